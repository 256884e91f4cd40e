"""Everything sojourn raises.

SojournError
├── BadInput                     the input is not valid
│   ├── BadPlace                 input that is not valid at a place
│   │   ├── BadFile              a file that cannot be opened, or is not YAML or JSON
│   │   ├── BadTopology          a topology that is not valid
│   │   │   └── BadNumber        negative, NaN, infinite, or outside its bounds
│   │   └── BadApplication       an operator, a stream or a function that is not valid
│   │       └── BadSchema        a schema that Spark does not accept
│   ├── BadRecord                a record that does not fit its schema
│   ├── BadAllocation            operators missing, unknown, without processors or on no node
│   ├── BadTarget                a target that is not a positive time
│   └── BadWorkload              a distribution, or a rate, that cannot be simulated
├── EngineError                  the running system failed, or did not answer
│   ├── ApplicationStarting      the application has not started yet
│   ├── ApplicationStopped       a record, or too many failures, stopped the application
│   ├── BrokerAway               no Kafka broker answers; the application waits
│   ├── DiskFull                 a disk is full; the application waits
│   ├── NoJava                   Java is not found, or too old
│   ├── JarsMissing              jars could not be downloaded
│   ├── RegistryAway             the schema registry does not answer; records wait for it
│   └── BrokerFailed             the broker did not start, rejected a request, or exited
└── CannotBeDone                 the input is valid, but there is no solution
    ├── UnstableStation          records arrive faster than the processors serve them
    ├── HotKey                   one key has more records than one processor can serve
    ├── TooFewCores              the load needs more cores than there are
    ├── TooFewProcessors         fewer processors than needed to keep up
    ├── BoundTooLow              max_processors below what is needed to keep up
    ├── TargetBelowFloor         no number of processors reaches the target
    ├── TargetOutOfReach         the allowed processors do not reach the target
    ├── TargetTooStrict          more processors are needed than are tried
    └── EndlessLoop              a branching loop whose gain is too close to 1

Errors keep their values as arguments, so they pickle, and format them in `__str__`.
"""

from collections.abc import Mapping

from sojourn.text import escaped


class SojournError(Exception):
    """The base of all errors of sojourn. The text says what is wrong and what to do."""


class BadInput(SojournError):
    """The input is not valid."""


class CannotBeDone(SojournError):
    """The input is valid, but there is no solution."""


class EngineError(SojournError):
    """The running system failed, or did not answer."""


class ApplicationStarting(EngineError):
    """The application *name* has not started yet: *stage* is the progress of its start."""

    def __init__(self, stage: str, name: str = "the application") -> None:
        super().__init__(stage, name)
        self.stage = stage

    def __str__(self) -> str:
        return f"{self.args[1]} is starting: {self.stage}; try again when it is running"


class ApplicationStopped(EngineError):
    """The application stopped: an error policy required it, or too many failures occurred."""


class BrokerAway(EngineError):
    """No Kafka broker has answered for *away_s*: the application waits until one does."""

    def __init__(self, away_s: float) -> None:
        super().__init__(away_s)

    def __str__(self) -> str:
        minutes, seconds = divmod(round(self.args[0]), 60)
        return f"no Kafka broker has answered for {minutes}:{seconds:02} min; waiting for one"


class DiskFull(EngineError):
    """A disk has no space for *what*; the application waits until *folder* has space."""

    def __init__(
        self, what: str, folder: str, problem: str = "No space left on device"
    ) -> None:
        super().__init__(what, folder, problem)
        self.what, self.folder, self.problem = what, folder, problem

    def __str__(self) -> str:
        return escaped(
            f"{self.what} cannot be written: {self.problem}; make room in {self.folder}"
        )


class NoJava(EngineError):
    """Java is not found, or too old."""

    def __init__(self, found: str, least: int) -> None:
        super().__init__(found, least)
        self.found, self.least = found, least

    def __str__(self) -> str:
        return escaped(
            f"Java {self.least} or newer is required: {self.found}; install it, "
            "and set JAVA_HOME to its folder or put it on the PATH"
        )


class JarsMissing(EngineError):
    """The jars *missing* could not be downloaded; *said* is the reason."""

    def __init__(self, missing: tuple[str, ...], said: str) -> None:
        super().__init__(missing, said)
        self.missing, self.said = missing, said

    def __str__(self) -> str:
        return escaped(
            f"could not download {', '.join(self.missing)}: {self.said}; check the network, or "
            "set SOJOURN_IVY_SETTINGS to an Ivy settings file with a mirror, or SOJOURN_JARS "
            "to a folder with the jars"
        )


class RegistryAway(EngineError):
    """A schema registry does not answer; callers may retry for *patience_s*."""

    def __init__(self, host: str, said: str, patience_s: float) -> None:
        super().__init__(host, said, patience_s)
        self.patience_s = patience_s

    def __str__(self) -> str:
        host, said, _ = self.args
        return escaped(
            f"the schema registry at {host} does not answer: {said}; check registry=, and that "
            "it runs"
        )


class BrokerFailed(EngineError):
    """The broker did not start, rejected a request, or exited; *log* is the end of its log."""

    def __init__(self, problem: str, way_out: str, log: tuple[str, ...] = ()) -> None:
        super().__init__(problem, way_out, log)
        self.problem, self.way_out, self.log = problem, way_out, log

    def __str__(self) -> str:
        said = escaped(f"{self.problem}; {self.way_out}")
        return "\n  ".join([said, *map(escaped, self.log)])


class BadPlace(BadInput):
    """Input that is not valid at a *place*: a file, a field, an operator."""

    def __init__(self, place: str, problem: str, way_out: str) -> None:
        super().__init__(place, problem, way_out)
        self.place, self.problem, self.way_out = place, problem, way_out

    def __str__(self) -> str:
        return escaped(f"{self.place}: {self.problem}; {self.way_out}")


class BadFile(BadPlace):
    """A file that cannot be opened, or is not YAML or JSON."""


class BadTopology(BadPlace):
    """A topology that is not valid.

    *place* is the dotted path in the file format; the same names are used in Python.
    *source* is the file, with its line where known, and empty in Python.
    """

    source = ""

    def __str__(self) -> str:
        return escaped(f"{self.source}: " if self.source else "") + super().__str__()


class BadNumber(BadTopology):
    """A number that is negative, NaN, infinite, or outside its bounds."""


class BadApplication(BadPlace):
    """An operator, a stream or a function that is not valid; *place* names it."""


class BadSchema(BadApplication):
    """A schema that Spark does not accept, or that does not fit the application."""


class BadRecord(BadInput):
    """A record that does not fit its schema, with the place in it and the reason."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(place, problem)
        self.place, self.problem = place, problem

    def __str__(self) -> str:
        return escaped(f"{self.place}: {self.problem}")


class BadAllocation(BadInput):
    """An allocation with a missing or unknown operator or node, or without processors."""


class BadTarget(BadInput):
    """A target that is not a positive time, or a number of processors below 1."""


class BadWorkload(BadInput):
    """A distribution, or a rate, that cannot be simulated."""


class UnstableStation(CannotBeDone):
    """Records arrive faster than the processors serve them."""

    def __init__(self, processors: int, needed: int, operator: str = "") -> None:
        super().__init__(processors, needed, operator)
        self.processors, self.needed, self.operator = processors, needed, operator

    def __str__(self) -> str:
        who = f"{self.operator}: " if self.operator else ""
        return (
            f"{who}{self.processors} processors cannot keep up; at least {self.needed} are "
            "needed"
        )


class HotKey(CannotBeDone):
    """One key has more records than one processor can serve.

    *part* is its fraction of the operator's records, which keep *busy* processors busy. *key*
    is empty if it is not known.
    """

    def __init__(self, operator: str, busy: float, part: float, key: str = "") -> None:
        super().__init__(operator, busy, part, key)
        self.operator, self.busy, self.part, self.key = operator, busy, part, key

    @property
    def said(self) -> str:
        """The key, its fraction of the records, and the load of that fraction."""
        who = f"the key {self.key}" if self.key else "one key"
        processors = "processor" if f"{self.busy:.3g}" == "1" else "processors"
        return escaped(
            f"{who} has {100 * self.part:.3g} % of the records of {self.operator}, which alone "
            f"keep {self.busy:.3g} {processors} busy"
        )

    def __str__(self) -> str:
        return (
            f"more processors do not help: {self.said}, and records of a key are served one "
            "at a time; spread the key, or make the function faster"
        )


class TooFewCores(CannotBeDone):
    """The load needs more cores than there are: no number of processors keeps up."""

    def __init__(self, demand: float, cores: float) -> None:
        super().__init__(demand, cores)
        self.demand, self.cores = demand, cores

    def __str__(self) -> str:
        are = "is" if self.cores == 1 else "are"
        return (
            f"the load needs {self.demand:.3g} cores, but there {are} {self.cores:.3g}; more "
            "processors do not help, only more cores, less load or less computing per record"
        )


class TooFewProcessors(CannotBeDone):
    """Fewer processors than needed to keep up."""

    def __init__(self, processors: int, least: Mapping[str, int]) -> None:
        super().__init__(processors, dict(least))
        self.processors, self.least = processors, dict(least)

    def __str__(self) -> str:
        least, each = self.least, ", ".join(f"{name}={k}" for name, k in self.least.items())
        return (
            f"{self.processors} processors cannot keep up; at least {sum(least.values())} are "
            f"needed ({each})"
        )


class BoundTooLow(CannotBeDone):
    """The `max_processors` of an operator are fewer than it needs to keep up."""

    def __init__(self, operator: str, most: int, needed: int) -> None:
        super().__init__(operator, most, needed)
        self.operator, self.most, self.needed = operator, most, needed

    def __str__(self) -> str:
        return (
            f"{self.operator}: max_processors is {self.most}, but {self.needed} are needed to "
            "keep up; raise it, or make the operator faster"
        )


class TargetBelowFloor(CannotBeDone):
    """No number of processors reaches the target, because the latency is at least *floor_s*.

    *hot* describes the hot key if the floor includes waiting for records of the same key.
    """

    def __init__(self, target: str, floor_s: float, hot: str = "") -> None:
        super().__init__(target, floor_s, hot)
        self.target, self.floor_s, self.hot = target, floor_s, hot

    def __str__(self) -> str:
        if self.hot:
            return (
                f"no number of processors reaches {self.target}: {self.hot}, and its records "
                f"are processed one at a time, so it is still {self.floor_s:.6g} s; spread "
                "the key, make the function faster, or raise the target"
            )
        return (
            f"no number of processors reaches {self.target}: without any waiting it is still "
            f"{self.floor_s:.6g} s; make the operators faster, or raise the target"
        )


class TargetOutOfReach(CannotBeDone):
    """The allowed processors do not reach the target.

    *needed* processors would; it is None if not even all `max_processors` are enough.
    """

    def __init__(
        self, target: str, reached_s: float, processors: int, needed: int | None = None
    ) -> None:
        super().__init__(target, reached_s, processors, needed)
        self.target, self.reached_s = target, reached_s
        self.processors, self.needed = processors, needed

    def __str__(self) -> str:
        needs = (
            f"{self.needed} are needed"
            if self.needed is not None
            else "raise max_processors: every operator is at its maximum"
        )
        return (
            f"{self.processors} processors do not reach {self.target}: their best use gives "
            f"{self.reached_s:.6g} s; {needs}"
        )


class TargetTooStrict(CannotBeDone):
    """The largest number of processors that is tried does not reach the target."""

    def __init__(self, target: str, reached_s: float, processors: int) -> None:
        super().__init__(target, reached_s, processors)
        self.target, self.reached_s, self.processors = target, reached_s, processors

    def __str__(self) -> str:
        return (
            f"more than {self.processors} processors are needed to reach {self.target}: the "
            f"best use of {self.processors} gives {self.reached_s:.6g} s; choose a target "
            "above that"
        )


class EndlessLoop(CannotBeDone):
    """The completion of a branching loop whose gain is too close to 1."""
