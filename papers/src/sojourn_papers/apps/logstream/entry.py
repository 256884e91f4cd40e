"""Entries: what lines of logs say."""

import re
from dataclasses import dataclass

LONGEST = 8_192
"""Letters of a line that are read; the rest is cut off."""

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

_MONTH, _CLOCK = f"(?P<month>{'|'.join(MONTHS)})", "(?P<clock>[0-9]{2}:[0-9]{2}:[0-9]{2})"
# [Thu Jun 09 06:07:04 2005] [error] [client 218.62.18.218] File does not exist: /var/www
_APACHE = re.compile(
    rf"\[[A-Z][a-z]{{2}} {_MONTH} (?P<day>[0-9]{{2}}) {_CLOCK} [0-9]{{4}}\] "
    r"\[(?P<level>[a-z]+)\] (?P<message>.*)",
    re.DOTALL,
)
# Jun  9 06:06:20 combo sshd(pam_unix)[19939]: authentication failure; rhost=218.188.2.4
_SYSLOG = re.compile(
    rf"{_MONTH} (?P<day>[ 0-9][0-9]) {_CLOCK} [^ ]+ (?P<tag>[^:]*):(?P<message>.*)", re.DOTALL
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An entry of a log.

    *time* is without the year, which syslog does not write: `06-09 06:07:04`. *level* is empty
    for syslog, and all but the message is if the line has neither format.
    """

    message: str
    time: str = ""
    level: str = ""
    component: str = ""


def parse(line: str) -> Entry:
    """Return the entry that a line is.

    >>> parse("[Thu Jun 09 06:07:04 2005] [notice] LDAP: SSL support unavailable")
    Entry(message='LDAP: SSL support unavailable', time='06-09 06:07:04', level='notice',
        component='httpd')
    >>> parse("Jun  9 06:06:20 combo kernel: Out of Memory").component
    'kernel'
    """
    line = line[:LONGEST].replace("\0", "\N{REPLACEMENT CHARACTER}")  # no text in PostgreSQL
    if found := _APACHE.fullmatch(line):
        level, component = found["level"], "httpd"
    elif found := _SYSLOG.fullmatch(line):
        level, component = "", re.split(r"[\[(]", found["tag"])[0].strip()
    else:
        return Entry(message=line)
    month = MONTHS.index(found["month"]) + 1
    return Entry(
        message=found["message"].strip(),
        time=f"{month:02}-{int(found['day']):02} {found['clock']}",
        level=level,
        component=component,
    )
