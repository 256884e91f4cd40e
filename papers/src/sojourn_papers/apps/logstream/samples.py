"""Lines for the log stream: of Apache and Linux in turns, real or made up.

Made-up lines are of the same kinds, about as frequent as in the real logs.
"""

from collections.abc import Iterator
from random import Random

from sojourn_papers.apps.data import data_file
from sojourn_papers.apps.logstream.entry import MONTHS
from sojourn_papers.apps.text_lines import endless, read_lines

APACHE, LINUX = "logs/apache_error_full.log.gz", "logs/linux_full.log.gz"

_APACHE_LINES = {
    "[{day} {time} 2005] [error] [client 10.0.{a}.{b}] File does not exist: /var/www/{a}": 37,
    "[{day} {time} 2005] [error] [client 10.0.{a}.{b}] Directory forbidden by rule: /": 12,
    "[{day} {time} 2005] [notice] jk2_init() Found child {a}{b} in scoreboard slot {b}": 11,
    "[{day} {time} 2005] [notice] workerEnv.init() ok /etc/httpd/conf/workers2.properties": 10,
    "[{day} {time} 2005] [error] mod_jk child workerEnv in error state {b}": 8,
    "[{day} {time} 2005] [error] [client 10.0.{a}.{b}] script not found: /var/www/{b}.cgi": 6,
    "[{day} {time} 2005] [error] [client 10.0.{a}.{b}] Invalid URI in request GET {a}": 1,
    "script not found or unable to stat": 8,
}
_LINUX_LINES = {
    "{time} combo kernel: Out of Memory: Killed process {a}{b} (httpd).": 40,
    "{time} combo sshd(pam_unix)[{a}{b}]: authentication failure; rhost=10.0.{a}.{b}": 15,
    "{time} combo sshd(pam_unix)[{a}{b}]: check pass; user unknown": 4,
    "{time} combo su(pam_unix)[{a}{b}]: session opened for user news by (uid={b})": 10,
    "{time} combo ftpd[{a}{b}]: connection from 10.0.{a}.{b} () at {day}": 15,
    "{time} combo logrotate: ALERT exited abnormally with [1]": 1,
    "{time} combo last message repeated {a} times": 1,
}
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def samples(seed: int) -> Iterator[tuple[str]]:
    """Yield lines without end."""
    apache, linux = data_file(APACHE), data_file(LINUX)
    if apache is None or linux is None:
        lines = made_up(seed)
    else:
        lines = _in_turns(endless(read_lines(apache), seed), endless(read_lines(linux), seed))
    for line in lines:
        yield (line,)


def made_up(seed: int) -> Iterator[str]:
    """Yield made-up lines of Apache and Linux, which are ten a minute."""
    return _in_turns(_drawn(_APACHE_LINES, "{:02}", seed), _drawn(_LINUX_LINES, "{:2}", seed))


def _in_turns(first: Iterator[str], second: Iterator[str]) -> Iterator[str]:
    for pair in zip(first, second, strict=False):
        yield from pair


def _drawn(kinds: dict[str, int], day_of_month: str, seed: int) -> Iterator[str]:
    random = Random(seed)  # noqa: S311 - samples
    minute = 0
    while True:
        for second in range(0, 60, 6):
            (kind,) = random.choices(list(kinds), list(kinds.values()))
            day, clock = divmod(minute, 24 * 60)
            month = MONTHS[day // 28 % 12]
            on = f"{month} {day_of_month.format(day % 28 + 1)}"
            yield kind.format(
                day=_DAYS[day % 7],
                time=f"{on} {clock // 60:02}:{clock % 60:02}:{second:02}",
                a=random.randrange(256),
                b=random.randrange(16),
            )
        minute += 1
