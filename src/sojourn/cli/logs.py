"""`sojourn logs`: what the processors of operators wrote."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from math import inf
from pathlib import Path
from time import sleep, time
from typing import Annotated, BinaryIO

import typer

from sojourn.cli.options.application import AppOption
from sojourn.cli.options.completion import operators_with_logs
from sojourn.cli.options.duration import read_duration_s
from sojourn.errors import BadFile, BadInput, BadTarget
from sojourn.escaped import escaped
from sojourn.service.entry import find
from sojourn.service.log_times import Clocks, time_s
from sojourn.topology.check import shown

__all__ = ["Tail", "logs"]

_LOOK_S = 0.2
_LINES = 20
_BLOCK = 1 << 16


def logs(
    operator: Annotated[
        str | None,
        typer.Argument(
            help="Whose; those of all operators without it.", autocompletion=operators_with_logs
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on as they are written, until Ctrl-C.")
    ] = False,
    lines: Annotated[
        int | None,
        typer.Option("--lines", "-n", min=0, help="How many of each; 20 without --since."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="From then on: 5m ago, or 2026-01-31T12:00:00Z."),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Those of an application that ended: its state."),
    ] = None,
    app: AppOption = None,
) -> None:
    """Show the logs of a running application, each line with its operator if there are several.

    Lines of several operators come in the order of their times, where they begin with one.

    Examples: sojourn logs match --follow · sojourn logs --since 5m
    """
    since_s = None if since is None else read_since_s(since, time())
    if lines is None and since_s is None:
        lines = _LINES
    folder = Path(find(app)[1].logs) if state is None else state / "logs"
    found = _found(folder)
    if operator is not None and operator not in found:
        known = ", ".join(found) or "none yet"
        raise BadInput(f"there is no log of {operator} in {folder}; there are: {known}")
    wide = max(map(len, found), default=0)
    tails: dict[str, Tail] = {}
    clocks, timed = Clocks(), set[str]()
    with suppress(KeyboardInterrupt), ExitStack() as open_files:
        while True:
            for name, path in _found(folder).items():
                if operator in (None, name) and name not in tails:
                    # a log that is new while we follow is shown from its beginning
                    tails[name] = Tail(path, lines if name in found else None)
                    open_files.callback(tails[name].close)
            new = {name: tail.new(unfinished=not follow) for name, tail in tails.items()}
            for line in clocks.merged(new):
                timed |= {line.operator} if line.at_s > -inf else set()
                if since_s is None or line.at_s >= since_s:
                    prefix = f"{line.operator:<{wide}} | " if operator is None else ""
                    typer.echo(prefix + line.text)
            if not follow:
                break
            sleep(_LOOK_S)

    untimed = [name for name in tails if name not in timed]
    if since_s is not None and untimed:
        typer.echo(
            f"no line of {', '.join(untimed)} has a time; -n 20 shows the last", err=True
        )


class Tail:
    """The lines of a file as they come, from the last *lines* on; all of them if None.

    A file that was cut short, or replaced by another, is read from its beginning.
    """

    def __init__(self, path: Path, lines: int | None) -> None:
        self._path = path
        self._file = _opened(path)
        self._rest = b""
        if lines is not None:
            self._file.seek(_start_of_last(self._file, lines))

    def new(self, *, unfinished: bool = False) -> Iterator[str]:
        """Yield the lines that were written since, without letters a terminal would obey.

        One that is still being written is left for later, unless *unfinished* ones count.
        """
        self._reopen_if_replaced()
        while block := self._file.read(_BLOCK):
            *whole, self._rest = (self._rest + block).split(b"\n")
            yield from map(_text, whole)
        if unfinished and self._rest:
            yield _text(self._rest)
            self._rest = b""

    def close(self) -> None:
        """Read no more."""
        self._file.close()

    def _reopen_if_replaced(self) -> None:
        with suppress(FileNotFoundError):
            there, here = self._path.stat(), os.fstat(self._file.fileno())
            if there.st_ino != here.st_ino:
                self._file.close()
                self._file, self._rest = _opened(self._path), b""
            elif there.st_size < self._file.tell():
                self._file.seek(0)
                self._rest = b""


def _found(folder: Path) -> dict[str, Path]:
    return {path.stem: path for path in sorted(folder.glob("*.log")) if path.is_file()}


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise BadFile(
            str(path), f"cannot be read: {error.strerror}", "check what you may read"
        ) from error


def _start_of_last(file: BinaryIO, lines: int) -> int:
    """Return where the last so many whole lines begin, reading from the end."""
    end = file.seek(0, os.SEEK_END)
    file.seek(max(0, end - 1))
    ends = file.read(1) == b"\n"  # the last line has its newline
    at, wanted = end, lines + ends
    if not wanted:
        return end
    while at > 0:
        size = min(_BLOCK, at)
        at -= size
        file.seek(at)
        block = file.read(size)
        newlines = block.count(b"\n")
        if newlines >= wanted:
            place = len(block)
            for _ in range(wanted):
                place = block.rindex(b"\n", 0, place)
            return at + place + 1
        wanted -= newlines
    return 0


def _text(line: bytes) -> str:
    return escaped(line.decode(errors="backslashreplace").rstrip("\r").expandtabs())


def read_since_s(text: str, now_s: float) -> float:
    """Return the time from which on lines are shown: `5m` ago, or 2026-01-31T12:00:00Z.

    >>> read_since_s("5m", 1000.0)
    700.0
    """
    if (at_s := time_s(text)) is not None:
        return at_s
    try:
        return now_s - read_duration_s(text)
    except BadTarget as error:
        raise BadInput(
            f"--since {shown(text)} is no time; write 5m, 2h or 2026-01-31T12:00:00Z"
        ) from error
