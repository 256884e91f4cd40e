"""The applications that come with Sojourn.

Each is a package here, with

- `app`, the application; its sources have samples;
- a module `offline` with `answers(source, record)`, which yields the sink and the record of
  every result of one source record, worked out without the application's operators. It yields
  nothing for sinks that depend on more than one record.
- if there are several applications in the package, variables of their names in place of `app`,
  and in `offline` functions of these names in place of `answers`;
- if it writes to a database, in `offline` too: `rows(records)`, the tables as they should be
  after these records, pairs of source and record; and `stored(url)`, as they are;
- if its sinks tell how tables change, `rows(records)` and `told(results)`, the tables by the
  records of each sink;
- if its operators keep states, `states(records)`: what they keep in the end, by operator and
  key. It leaves out operators whose states depend on the order of records. Of one of several
  applications it is `NAME_states`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, TypeAlias, cast

from sojourn.app.application import App
from sojourn.errors import BadInput

Record: TypeAlias = tuple[Any, ...]
Answers: TypeAlias = Callable[[str, Record], Iterable[tuple[str, Record]]]
"""Returns the sink and the record of every result of a source record."""
Tables: TypeAlias = Mapping[str, frozenset[Record]]
"""The rows of tables by name."""
Rows: TypeAlias = Callable[[Iterator[tuple[str, Record]]], Tables]
Told: TypeAlias = Callable[[Mapping[str, Sequence[Record]]], Tables]
"""Returns the tables that the records of sinks tell of."""
States: TypeAlias = Mapping[str, Mapping[Record, Mapping[str, object]]]
"""The states of keys, by operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An application: the paper it is from, its data, and what it shows.

    *extra* is what has to be installed for it: `sojourn[extra]`. *variant* is the variable of
    one of several applications in the package, which is then the *name* up to the dash.
    """

    name: str
    paper: str
    data: str
    shows: str
    extra: str = ""
    variant: str = ""

    @property
    def address(self) -> str:
        """Where it is: `package.module:app`."""
        return f"{self._package}:{self.variant or 'app'}"

    @property
    def app(self) -> App:
        """The application."""
        return cast("App", getattr(import_module(self._package), self.variant or "app"))

    @property
    def answers(self) -> Answers:
        """The results of each source record."""
        return cast("Answers", self._offline(self.variant or "answers"))

    @property
    def rows(self) -> Rows | None:
        """The rows that records lead to; None if there are no tables."""
        return cast("Rows | None", self._offline("rows"))

    @property
    def stored(self) -> Callable[[str], Tables] | None:
        """The rows in the database at an address; None if there is no database."""
        return cast("Callable[[str], Tables] | None", self._offline("stored"))

    @property
    def told(self) -> Told | None:
        """The rows that sinks tell of; None if they do not tell of tables."""
        return cast("Told | None", self._offline("told"))

    @property
    def states(self) -> Callable[[Iterator[tuple[str, Record]]], States] | None:
        """The states that records lead to; None if operators keep none."""
        name = f"{self.variant}_states" if self.variant else "states"
        return cast(
            "Callable[[Iterator[tuple[str, Record]]], States] | None", self._offline(name)
        )

    def load_offline(self) -> ModuleType:
        """Return its module `offline`. Raise `ImportError` if the *extra* is not installed."""
        return import_module(f"{self._package}.offline")

    def _offline(self, name: str) -> object:
        return getattr(self.load_offline(), name, None)

    @property
    def _package(self) -> str:
        return f"sojourn_papers.apps.{self.name.removesuffix(f'-{self.variant}')}"


_ENTRIES = (
    Entry(
        name="vld",
        paper="DRS",
        data="frames of video clips with logos composited onto them",
        shows="heavy operators in a chain, large binary records",
        extra="vld",
    ),
    Entry(
        name="vld-bulk",
        paper="DRS",
        data="the same frames",
        shows="a thousand records at once, and a state for each frame until all have come",
        extra="vld",
        variant="bulk",
    ),
    Entry(
        name="fpd",
        paper="DRS",
        data="tweets of the US Congress, in a sliding window",
        shows="a loop, and a state for each key",
    ),
    Entry(
        name="wordcount",
        paper="predictive scheduling",
        data="lines of a novel",
        shows="a chain through Spark's own aggregation, into a database",
    ),
    Entry(
        name="logstream",
        paper="predictive scheduling",
        data="lines of Apache's error log and of syslog",
        shows="two branches that write to a database, each row once",
    ),
    Entry(
        name="urls",
        paper="D-Storm",
        data="tweets about crises, clicks on bit.ly links",
        shows="calls of a remote service, with a cache",
    ),
    Entry(
        name="sentiment",
        paper="D-Storm",
        data="tweets of the US Congress, the word list AFINN",
        shows="many light operators, in a tree",
    ),
    Entry(
        name="traffic",
        paper="adaptive input admission",
        data="GPS positions of vehicles in San Francisco",
        shows="a sliding window by the time of records, in states by key",
    ),
    *(
        Entry(
            name=f"micro-{shape}",
            paper="D-Storm",
            data="numbered records",
            shows="load, selectivity and processors of operators as parameters",
            variant=shape,
        )
        for shape in ("linear", "diamond", "star")
    ),
)
CATALOGUE: Mapping[str, Entry] = {each.name: each for each in _ENTRIES}


def entry(name: str) -> Entry:
    """Return an application by its name."""
    if name not in CATALOGUE:
        raise BadInput(f"there is no application {name}; write one of {', '.join(CATALOGUE)}")
    return CATALOGUE[name]
