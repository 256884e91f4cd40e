"""The applications that come with Sojourn.

Each is a package here, with

- `app`, the application; its sources have samples;
- a module `offline` with `answers(source, record)`, which yields the sink and the record of
  every result of one source record, worked out without the application's operators. It yields
  nothing for sinks that depend on more than one record.
- if it writes to a database, in `offline` too: `rows(records)`, the tables as they should be
  after these records, pairs of source and record; and `stored(url)`, as they are.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias, cast

from sojourn.app.application import App
from sojourn.errors import BadInput

__all__ = ["CATALOGUE", "Answers", "Entry", "Record", "Rows", "Tables", "entry"]

Record: TypeAlias = tuple[Any, ...]
Answers: TypeAlias = Callable[[str, Record], Iterable[tuple[str, Record]]]
"""Returns the sink and the record of every result of a source record."""
Tables: TypeAlias = Mapping[str, frozenset[Record]]
"""The rows of tables by name."""
Rows: TypeAlias = Callable[[Iterator[tuple[str, Record]]], Tables]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An application: the paper it is from, its data, and what it shows.

    *extra* is what has to be installed for it: `sojourn[extra]`.
    """

    name: str
    paper: str
    data: str
    shows: str
    extra: str = ""

    @property
    def address(self) -> str:
        """Where it is: `package.module:app`."""
        return f"sojourn.apps.{self.name}:app"

    @property
    def app(self) -> App:
        """The application."""
        return cast("App", import_module(f"sojourn.apps.{self.name}").app)

    @property
    def answers(self) -> Answers:
        """The results of each source record."""
        return cast("Answers", self._offline("answers"))

    @property
    def rows(self) -> Rows | None:
        """The rows that records lead to; None if there is no database."""
        return cast("Rows | None", self._offline("rows"))

    @property
    def stored(self) -> Callable[[str], Tables] | None:
        """The rows in the database at an address; None if there is no database."""
        return cast("Callable[[str], Tables] | None", self._offline("stored"))

    def _offline(self, name: str) -> object:
        return getattr(import_module(f"sojourn.apps.{self.name}.offline"), name, None)


_ENTRIES = (
    Entry(
        name="vld",
        paper="DRS",
        data="video clips with logos on the frames; drawn without SOJOURN_DATA",
        shows="heavy operators in a chain, large binary records",
        extra="vld",
    ),
)
CATALOGUE: Mapping[str, Entry] = {each.name: each for each in _ENTRIES}


def entry(name: str) -> Entry:
    """Return an application by its name."""
    if name not in CATALOGUE:
        raise BadInput(f"there is no application {name}; write one of {', '.join(CATALOGUE)}")
    return CATALOGUE[name]
