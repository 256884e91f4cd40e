"""Everything sojourn raises.

SojournError
├── BadInput                 what was given cannot be right
│   ├── BadFile              it cannot be opened, or is not YAML or JSON
│   ├── BadTopology          the place, the value and the way out are named
│   │   ├── UnknownField     a field that the format does not have
│   │   ├── MissingField     a field that the format requires
│   │   ├── WrongType        text where a number belongs, and the like
│   │   ├── BadNumber        negative, NaN, infinite, or out of its range
│   │   ├── BadName          an operator or arrival without a usable name
│   │   ├── UnknownOperator  records sent to an operator that does not exist
│   │   ├── BadShares        shares or probabilities that do not add up
│   │   ├── BadBounds        min_processors above max_processors
│   │   ├── NoArrivals       nothing enters from outside
│   │   └── UnstableLoop     a loop that multiplies its own records
│   ├── BadApplication       an operator, a stream or a function that cannot be right
│   │   └── BadSchema        a schema that Spark would not take
│   ├── BadRecord            a record that does not fit its schema
│   ├── BadAllocation        operators forgotten, unknown, without processors, or nowhere
│   ├── BadTarget            a target that is no positive time
│   ├── BadTopic             a topic, or a number of partitions, that Kafka would refuse
│   ├── BadCalibration       measurements that no calibration can be fitted to
│   ├── BadWorkload          a shape of times, or a rate, that cannot be simulated
│   ├── UnknownEngine        no engine of that name
│   ├── UnknownModel         no station model of that name
│   ├── UnknownPolicy        no policy of that name
│   └── UnknownPlacer        no placer of that name
├── EngineError              the running system refused, or did not answer
│   ├── ApplicationStopped   a record, or too many failures, ended the application
│   ├── BrokerAway           no broker answers for a while; it is waited for
│   ├── NoJava               none is found, or it is too old
│   ├── JarsMissing          what runs inside Java could not be downloaded
│   └── BrokerFailed         the broker did not start, refused, or ended
└── CannotBeDone             right as a question, but the answer is no
    ├── UnstableStation      work arrives faster than the processors can do it
    ├── HotKey               one key brings more than one processor can do
    ├── TooFewCores          records need more cores than there are, however many processors
    ├── TooFewProcessors     fewer than it takes to keep up
    ├── BoundTooLow          max_processors below what keeping up takes
    ├── TargetBelowFloor     no number of processors is that fast
    ├── TargetOutOfReach     the processors allowed are not that fast
    ├── EndlessLoop          completion of a loop that all but multiplies its records
    └── Extrapolated         a calibration asked about what it was not fitted to

Errors keep their values as arguments, so they pickle, and format them in `__str__`.
"""

from collections.abc import Mapping

from sojourn.escaped import escaped

__all__ = [
    "ApplicationStopped",
    "BadAllocation",
    "BadApplication",
    "BadBounds",
    "BadCalibration",
    "BadFile",
    "BadInput",
    "BadName",
    "BadNumber",
    "BadRecord",
    "BadSchema",
    "BadShares",
    "BadTarget",
    "BadTopic",
    "BadTopology",
    "BadWorkload",
    "BoundTooLow",
    "BrokerAway",
    "BrokerFailed",
    "CannotBeDone",
    "EndlessLoop",
    "EngineError",
    "Extrapolated",
    "HotKey",
    "JarsMissing",
    "MissingField",
    "NoArrivals",
    "NoJava",
    "SojournError",
    "TargetBelowFloor",
    "TargetOutOfReach",
    "TooFewCores",
    "TooFewProcessors",
    "UnknownEngine",
    "UnknownField",
    "UnknownModel",
    "UnknownOperator",
    "UnknownPlacer",
    "UnknownPolicy",
    "UnstableLoop",
    "UnstableStation",
    "WrongType",
]


class SojournError(Exception):
    """Anything that sojourn refuses, with the reason and the way out."""


class BadInput(SojournError):
    """What was given cannot be right."""


class CannotBeDone(SojournError):
    """The question is right, but the answer is no."""


class EngineError(SojournError):
    """The running system refused, or did not answer."""


class ApplicationStopped(EngineError):
    """The application runs no more: a record's error policy says so, or nothing else helped."""


class BrokerAway(EngineError):
    """No broker answers, for *away_s* by now: what runs stands still until one does."""

    def __init__(self, away_s: float) -> None:
        super().__init__(away_s)
        self.away_s = away_s

    def __str__(self) -> str:
        minutes, seconds = divmod(round(self.away_s), 60)
        return f"no broker answers since {minutes}:{seconds:02}; it is waited for"


class NoJava(EngineError):
    """No Java where it is looked for, or one that is too old."""

    def __init__(self, found: str, least: int) -> None:
        super().__init__(found, least)
        self.found, self.least = found, least

    def __str__(self) -> str:
        return escaped(
            f"no Java {self.least} or newer: {self.found}; install one, "
            "and set JAVA_HOME to its folder or put it on the PATH"
        )


class JarsMissing(EngineError):
    """What runs inside Java could not be downloaded: *missing* names it, *said* says why."""

    def __init__(self, missing: tuple[str, ...], said: str) -> None:
        super().__init__(missing, said)
        self.missing, self.said = missing, said

    def __str__(self) -> str:
        return escaped(
            f"could not get {', '.join(self.missing)}: {self.said}; check the network, or name "
            "a mirror (an Ivy settings file in SOJOURN_IVY_SETTINGS) or a folder that has the "
            "jars (SOJOURN_JARS)"
        )


class BrokerFailed(EngineError):
    """The broker did not start, refused something, or ended; *log* is the end of its log."""

    def __init__(self, problem: str, way_out: str, log: tuple[str, ...] = ()) -> None:
        super().__init__(problem, way_out, log)
        self.problem, self.way_out, self.log = problem, way_out, log

    def __str__(self) -> str:
        said = escaped(f"{self.problem}; {self.way_out}")
        return "\n  ".join([said, *map(escaped, self.log)])


class BadFile(BadInput):
    """A file that cannot be opened, or is not YAML or JSON."""

    def __init__(self, source: str, problem: str, way_out: str) -> None:
        super().__init__(source, problem, way_out)

    def __str__(self) -> str:
        source, problem, way_out = self.args
        return escaped(f"{source}: {problem}; {way_out}")


class BadTopology(BadInput):
    """Something in a topology that cannot be right.

    *place* is the dotted path in the file format; the same names are used in Python.
    *source* is the file, with its line where known, and empty in Python.
    """

    def __init__(
        self, place: str, problem: str, way_out: str, *, value: object = None, source: str = ""
    ) -> None:
        super().__init__(place, problem, way_out)
        self.place, self.problem, self.way_out = place, problem, way_out
        self.value, self.source = value, source

    def __str__(self) -> str:
        where = f"{self.source}: {self.place}" if self.source else self.place
        return escaped(f"{where}: {self.problem}; {self.way_out}")


class UnknownField(BadTopology):
    """A field that the format does not have."""


class MissingField(BadTopology):
    """A field that the format requires."""


class WrongType(BadTopology):
    """Text where a number belongs, and the like."""


class BadNumber(BadTopology):
    """A number that is negative, NaN, infinite, or out of its range."""


class BadName(BadTopology):
    """An operator or arrival without a usable name."""


class UnknownOperator(BadTopology):
    """Records sent to an operator that does not exist."""


class BadShares(BadTopology):
    """Shares or probabilities that do not add up."""


class BadBounds(BadTopology):
    """`min_processors` above `max_processors`."""


class NoArrivals(BadTopology):
    """Nothing enters from outside."""


class UnstableLoop(BadTopology):
    """A loop that sends back at least as many records as it takes."""


class BadApplication(BadInput):
    """An operator, a stream or a function that cannot be right: the place names it."""

    def __init__(self, place: str, problem: str, way_out: str) -> None:
        super().__init__(place, problem, way_out)
        self.place, self.problem, self.way_out = place, problem, way_out

    def __str__(self) -> str:
        return escaped(f"{self.place}: {self.problem}; {self.way_out}")


class BadSchema(BadApplication):
    """A schema that Spark would not take, or that the application cannot have."""


class BadRecord(BadInput):
    """A record that does not fit its schema, with the place in it and the reason."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(place, problem)
        self.place, self.problem = place, problem

    def __str__(self) -> str:
        return escaped(f"{self.place}: {self.problem}")


class BadAllocation(BadInput):
    """An allocation or placement that forgets an operator, invents one, or gives it nothing."""


class BadTarget(BadInput):
    """A target that is no positive time, or a number of processors that is none."""


class BadTopic(BadInput):
    """A topic, or a number of partitions, that Kafka would refuse."""


class BadCalibration(BadInput):
    """Measurements that no calibration can be fitted to."""


class BadWorkload(BadInput):
    """A shape of times, or a rate, that cannot be simulated."""


class UnknownEngine(BadInput):
    """No engine of that name."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(name, known)

    def __str__(self) -> str:
        return escaped(f"no engine is called {_among(*self.args)}")


class UnknownModel(BadInput):
    """No station model of that name."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(name, known)

    def __str__(self) -> str:
        return escaped(f"no station model is called {_among(*self.args)}")


class UnknownPolicy(BadInput):
    """No policy of that name."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(name, known)

    def __str__(self) -> str:
        return escaped(f"no policy is called {_among(*self.args)}")


class UnknownPlacer(BadInput):
    """No placer of that name."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(name, known)

    def __str__(self) -> str:
        return escaped(f"no placer is called {_among(*self.args)}")


class UnstableStation(CannotBeDone):
    """Work arrives faster than the processors can do it."""

    def __init__(self, processors: int, needed: int, operator: str = "") -> None:
        super().__init__(processors, needed, operator)
        self.processors, self.needed, self.operator = processors, needed, operator

    def __str__(self) -> str:
        who = f"{self.operator}: " if self.operator else ""
        return f"{who}{self.processors} processors cannot keep up; it takes {self.needed}"


class HotKey(CannotBeDone):
    """Records of one key, which are served one after the other, are more than that can be."""

    def __init__(self, operator: str, busy: float) -> None:
        super().__init__(operator, busy)
        self.operator, self.busy = operator, busy

    def __str__(self) -> str:
        return (
            f"{self.operator}: no number of processors keeps up: its most frequent key alone "
            f"keeps {self.busy:.3g} busy, and is served by one at a time; split that key, or "
            "make the operator faster"
        )


class TooFewCores(CannotBeDone):
    """Records need more cores than there are: no number of processors keeps up."""

    def __init__(self, demand: float, cores: float) -> None:
        super().__init__(demand, cores)
        self.demand, self.cores = demand, cores

    def __str__(self) -> str:
        are = "is" if self.cores == 1 else "are"
        return (
            f"the records need {self.demand:.3g} cores, there {are} {self.cores:.3g}; more "
            "processors do not help: only more cores, less load, or less computing will do"
        )


class TooFewProcessors(CannotBeDone):
    """Fewer processors than it takes to keep up."""

    def __init__(self, processors: int, least: Mapping[str, int]) -> None:
        super().__init__(processors, dict(least))
        self.processors, self.least = processors, dict(least)

    def __str__(self) -> str:
        return (
            f"{self.processors} processors cannot keep up; the least that can is "
            f"{sum(self.least.values())} ({_each(self.least)})"
        )


class BoundTooLow(CannotBeDone):
    """An operator's `max_processors` is below what keeping up takes."""

    def __init__(self, operator: str, most: int, needed: int) -> None:
        super().__init__(operator, most, needed)
        self.operator, self.most, self.needed = operator, most, needed

    def __str__(self) -> str:
        return (
            f"{self.operator}: max_processors is {self.most}, but keeping up takes "
            f"{self.needed}; raise it, or make the operator faster"
        )


class TargetBelowFloor(CannotBeDone):
    """No number of processors is that fast: even without waiting it takes longer."""

    def __init__(self, target: str, floor_s: float) -> None:
        super().__init__(target, floor_s)
        self.target, self.floor_s = target, floor_s

    def __str__(self) -> str:
        return (
            f"no number of processors reaches {self.target}: without any waiting it is still "
            f"{self.floor_s:.6g} s; make the operators faster, or ask for more than that"
        )


class TargetOutOfReach(CannotBeDone):
    """The processors that are allowed are not that fast.

    *needed* is what it takes; without it, not even all that operators may have are enough.
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
            else "more are not allowed: raise the max_processors of the operators"
        )
        return (
            f"{self.processors} processors do not reach {self.target}: their best use gives "
            f"{self.reached_s:.6g} s; {needs}"
        )


class EndlessLoop(CannotBeDone):
    """The completion of a loop that branches, and all but multiplies its own records."""

    def __init__(self, component: tuple[str, ...], generations: int) -> None:
        super().__init__(component, generations)
        self.component, self.generations = component, generations

    def __str__(self) -> str:
        return (
            f"the loop through {', '.join(self.component)} has not died out after "
            f"{self.generations} generations, so its completion cannot be told; "
            "lower the mean numbers emitted inside it"
        )


class Extrapolated(CannotBeDone):
    """A calibration was asked about estimates it was not fitted to."""

    def __init__(self, estimate_s: float, low_s: float, high_s: float) -> None:
        super().__init__(estimate_s, low_s, high_s)

    def __str__(self) -> str:
        estimate_s, low_s, high_s = self.args
        return (
            f"the calibration was fitted to estimates from {low_s:.6g} s to {high_s:.6g} s and "
            f"says nothing of {estimate_s:.6g} s; measure there and fit again, "
            "or leave the calibration out"
        )


def _each(allocation: Mapping[str, int]) -> str:
    return ", ".join(f"{operator}={k}" for operator, k in allocation.items())


def _among(name: str, known: tuple[str, ...]) -> str:
    return f"{name!r}; there are {', '.join(known)}, and your own: package.module:name"
