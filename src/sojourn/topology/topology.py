"""The topology of an application: operators connected by streams, checked.

Records are frozen, and checked on construction. Fields have the same names and meanings as in a
topology file (docs/reference/topology-file.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import floor, isfinite
from typing import Literal, get_args

from sojourn.errors import BadNumber, BadTopology
from sojourn.text import shown
from sojourn.topology import check
from sojourn.topology.load import FanOut, Flow, StationLoad, arrival_scvs
from sojourn.topology.node_cores import NodeCores
from sojourn.topology.traffic import components, dies_out, is_loop, loop_gain, rates

Dispatch = Literal["shared", "round_robin"]
"""One queue for all processors, or one queue per processor, filled round-robin."""

Route = Literal["each", "one_of"]
"""Each target gets its mean number of records, or at most one target gets one record."""

# Shares are written with a few decimals, and sums of floats are rounded.
_SUM_SLACK = 1e-6
# A loop this close to gain 1 needs more rounds than any latency target allows; and the
# spectral radius of a matrix that multiplies to exactly 1 rounds to either side of it.
_CRITICAL_GAIN = 1 - 1e-9
# More than a billion busy processors come from a wrong unit.
_MOST_ERLANGS = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A stream of root records from outside."""

    name: str
    per_s: float
    """Records per second."""
    into: str | Mapping[str, float]
    """The operator it enters, or the share that enters at each."""
    scv: float = 1.0
    """The scv of the gaps between records."""

    def __post_init__(self) -> None:
        place = check.name("arrivals", self.name)
        check.number(f"{place}.per_s", self.per_s)
        check.number(f"{place}.scv", self.scv)
        if isinstance(self.into, str):
            return
        check.numbers(
            f"{place}.into", self.into, example="extract or {extract: 0.7, match: 0.3}"
        )
        total = sum(map(float, self.into.values()))
        if abs(total - 1) > _SUM_SLACK:
            problem = f"the sum of the shares is {total:.6g}"
            raise BadNumber(f"{place}.into", problem, "it must be 1")

    @property
    def shares(self) -> Mapping[str, float]:
        """The share of this stream that enters at each operator."""
        return {self.into: 1.0} if isinstance(self.into, str) else self.into


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """An operator, which emits zero or more records for each record it serves.

    >>> Operator(name="split", service_s=0.002, emits={"count": 8.5}).branches
    True
    """

    name: str
    service_s: float
    """The mean service time on a processor of speed 1."""
    service_scv: float = 1.0
    emits: Mapping[str, float] = field(default_factory=dict)
    """The mean number of records sent to each operator, per record served."""
    route: Route = "each"
    arrival_scv: float | None = None
    """The measured scv of the arrivals; None derives it from the incoming streams."""
    dispatch: Dispatch = "shared"
    transfer_s: float = 0.0
    """The network time of a record to this operator."""
    min_processors: int = 1
    max_processors: int | None = None
    speed: float = 1.0
    """The relative speed of its processors, by which *service_s* is divided."""
    cpu_s: float | None = None
    """The part of *service_s* that needs a core; the rest waits. None needs no core."""
    hottest_key: float = 0.0
    """The share of records with the most frequent key, served one at a time; 0: no keys."""
    hottest_key_name: str = ""
    """That key, for messages."""

    def __post_init__(self) -> None:
        place = check.name("operators", self.name)
        for quantity in ("service_s", "service_scv", "transfer_s", "speed", "hottest_key"):
            check.number(f"{place}.{quantity}", getattr(self, quantity))
        if self.hottest_key > 1:
            problem = f"{self.hottest_key} is above 1"
            raise BadNumber(f"{place}.hottest_key", problem, "write 0 to 1")
        if not isinstance(self.hottest_key_name, str):
            problem = f"{shown(self.hottest_key_name)} is not text"
            raise BadTopology(f"{place}.hottest_key_name", problem, "put it in quotes")
        if self.arrival_scv is not None:
            check.number(f"{place}.arrival_scv", self.arrival_scv)
        if self.speed == 0 or not isfinite(self.service_s / self.speed):
            problem = f"at speed {self.speed} the service time is infinite"
            raise BadNumber(f"{place}.speed", problem, "write a larger one")
        if self.cpu_s is not None:
            self._check_cpu(f"{place}.cpu_s", self.cpu_s)
        check.choice(f"{place}.route", self.route, get_args(Route))
        check.choice(f"{place}.dispatch", self.dispatch, get_args(Dispatch))
        self._check_emits(f"{place}.emits")
        self._check_bounds(place)

    def _check_emits(self, place: str) -> None:
        check.numbers(place, self.emits, example="emits: {match: 1}")
        total = sum(map(float, self.emits.values()))
        if self.route == "one_of" and total > 1 + _SUM_SLACK:
            raise BadNumber(
                place,
                f"route is one_of, but the sum of the probabilities is {total:.6g}",
                "it must be at most 1; lower them, or write route: each",
            )

    def _check_cpu(self, place: str, cpu_s: float) -> None:
        check.number(place, cpu_s)
        if cpu_s > self.service_s * (1 + _SUM_SLACK):
            problem = f"{cpu_s} is above service_s, {self.service_s}, which includes it"
            raise BadNumber(place, problem, "lower cpu_s or raise service_s")

    def _check_bounds(self, place: str) -> None:
        check.count(f"{place}.min_processors", self.min_processors)
        if self.max_processors is None:
            return
        check.count(f"{place}.max_processors", self.max_processors)
        if self.max_processors < self.min_processors:
            raise BadNumber(
                f"{place}.max_processors",
                f"{self.max_processors} is below min_processors, {self.min_processors}",
                "raise max_processors or lower min_processors",
            )

    @property
    def most_processors(self) -> int | None:
        """The most processors that are allowed and can be busy; None if there is no limit.

        If all records have the same key, only one can be busy: it is *min_processors* then.

        >>> Operator(name="count", service_s=1, hottest_key=1).most_processors
        1
        """
        return self.min_processors if self.hottest_key == 1 else self.max_processors

    @property
    def branches(self) -> bool:
        """Whether a record served here may have several children."""
        if self.route == "one_of":
            return False
        sent = [mean for mean in self.emits.values() if mean > 0]
        return len(sent) > 1 or any(mean > 1 for mean in sent)

    @property
    def fan_outs(self) -> Mapping[str, FanOut]:
        """The records sent to each target: the mean, rounded down or up at random.

        >>> Operator(name="split", service_s=1, emits={"count": 8.5}).fan_outs
        {'count': FanOut(mean=8.5, variance=0.25)}
        """
        sent = {}
        for target, mean in self.emits.items():
            if mean > 0:
                chance = min(mean, 1.0) if self.route == "one_of" else mean - floor(mean)
                sent[target] = FanOut(float(mean), chance * (1 - chance))
        return sent


@dataclass(frozen=True, kw_only=True)
class Topology:
    """Operators, the streams between them, and the arrivals from outside.

    Raise a `BadTopology` that names the place if an operator is unknown, nothing arrives, or
    the gain of a loop is 1 or more.

    >>> vld = Topology(
    ...     name="vld",
    ...     arrivals=(Arrival(name="frames", per_s=13, into="extract"),),
    ...     operators=(
    ...         Operator(name="extract", service_s=0.5, emits={"match": 1}),
    ...         Operator(name="match", service_s=0.55, emits={"aggregate": 1}),
    ...         Operator(name="aggregate", service_s=0.02),
    ...     ),
    ... )
    >>> vld.loads["match"].erlangs
    7.15
    """

    # No slots: derived values are cached, because a plan needs them for each of thousands of
    # candidate allocations.

    name: str
    arrivals: tuple[Arrival, ...]
    operators: tuple[Operator, ...]
    cores: float | NodeCores | None = None
    """Cores shared by all operators, or by those on the same node; None if not limited."""

    def __post_init__(self) -> None:
        text = self.name if isinstance(self.name, str) else ""
        if not text.strip() or not text.isprintable():
            problem = f"{shown(self.name)} is not a name"
            raise BadTopology("name", problem, "write text, in quotes if necessary")
        if not self.operators:
            raise BadTopology("operators", "there are none", "write at least one")
        check.distinct("arrivals", (arrival.name for arrival in self.arrivals))
        check.distinct("operators", (operator.name for operator in self.operators))
        for arrival in self.arrivals:
            check.known(f"arrivals.{arrival.name}.into", arrival.shares, self.operator)
        for operator in self.operators:
            check.known(f"operators.{operator.name}.emits", operator.emits, self.operator)
        if not self.arrivals_per_s > 0:
            raise BadTopology(
                "arrivals",
                f"the arrival rate is {self.arrivals_per_s:g}",
                "give at least one stream a rate above 0: frames: {per_s: 13, into: extract}",
            )
        if self.cores is not None and not isinstance(self.cores, NodeCores):
            check.number("cores", self.cores)
            if self.cores == 0:
                problem = "there are none"
                raise BadNumber("cores", problem, "write more than 0, or leave it out")
        self._check_loops()
        self._check_rates()

    def _check_loops(self) -> None:
        loops = (part for part in self.components if is_loop(part, self.gains))
        for component in loops:
            if not dies_out(component, self.gains, critical=_CRITICAL_GAIN):
                gain = loop_gain(component, self.gains)
                raise BadTopology(
                    f"operators.{component[0]}.emits",
                    f"the loop through {', '.join(component)} has gain {gain:.6g}, "
                    "so the number of its records grows without limit",
                    "lower the mean numbers emitted inside it until the gain is below 1",
                )

    def _check_rates(self) -> None:
        for name, load in self.loads.items():
            finite = (self.arrivals_per_s, self.visits[name], load.arrival_scv)
            if not (load.erlangs <= _MOST_ERLANGS and all(map(isfinite, finite))):
                raise BadNumber(
                    f"operators.{name}",
                    f"{load.arrivals_per_s:g} records per second need {load.erlangs:g} "
                    "processors",
                    "check the units of the rates, the service time and the numbers emitted",
                )

    @cached_property
    def arrivals_per_s(self) -> float:
        """Root records per second, λ₀."""
        return sum(float(arrival.per_s) for arrival in self.arrivals)

    @cached_property
    def operator(self) -> Mapping[str, Operator]:
        """The operators by name."""
        return {operator.name: operator for operator in self.operators}

    @cached_property
    def fan_outs(self) -> Mapping[str, Mapping[str, FanOut]]:
        """The records sent from operator to operator, per record served."""
        return {operator.name: operator.fan_outs for operator in self.operators}

    @cached_property
    def gains(self) -> Mapping[str, Mapping[str, float]]:
        """The means of `fan_outs`."""
        return {
            name: {target: fan_out.mean for target, fan_out in targets.items()}
            for name, targets in self.fan_outs.items()
        }

    @cached_property
    def components(self) -> tuple[tuple[str, ...], ...]:
        """The strongly connected components, in the order that records reach them."""
        return tuple(components(self.gains))

    @cached_property
    def looped(self) -> frozenset[str]:
        """The operators inside a loop."""
        loops = (part for part in self.components if is_loop(part, self.gains))
        return frozenset(name for part in loops for name in part)

    @cached_property
    def entries(self) -> Mapping[str, float]:
        """Root records per second that enter at each operator."""
        entering = dict.fromkeys(self.operator, 0.0)
        for arrival in self.arrivals:
            for target, share in arrival.shares.items():
                entering[target] += arrival.per_s * share
        return entering

    @cached_property
    def rates(self) -> Mapping[str, float]:
        """Records per second that reach each operator, λ."""
        return rates(self.entries, self.gains)

    @cached_property
    def visits(self) -> Mapping[str, float]:
        """Mean records of a root's tree that reach each operator, λᵢ/λ₀."""
        return {name: per_s / self.arrivals_per_s for name, per_s in self.rates.items()}

    @cached_property
    def loads(self) -> Mapping[str, StationLoad]:
        external: dict[str, list[Flow]] = {name: [] for name in self.operator}
        for arrival in self.arrivals:
            for target, share in arrival.shares.items():
                # random splitting: see `sojourn.topology.load`
                scv = share * arrival.scv + max(0.0, 1 - share)
                external[target].append(Flow(arrival.per_s * share, scv))
        scvs = arrival_scvs(
            external,
            self.fan_outs,
            self.rates,
            fixed={o.name: o.arrival_scv for o in self.operators if o.arrival_scv is not None},
            order=[name for component in self.components for name in component],
            looped=self.looped,
        )
        return {
            operator.name: StationLoad(
                arrivals_per_s=self.rates[operator.name],
                service_s=operator.service_s / operator.speed,
                arrival_scv=scvs[operator.name],
                service_scv=operator.service_scv,
            )
            for operator in self.operators
        }

    @cached_property
    def branches(self) -> bool:
        """Whether any record may have several children."""
        return any(o.branches and self.rates[o.name] > 0 for o in self.operators)

    def with_operators(self, *changed: Operator) -> "Topology":
        """Return a copy in which *changed* replace the operators of the same names."""
        operators = {**self.operator, **{operator.name: operator for operator in changed}}
        return replace(self, operators=tuple(operators.values()))

    def scaled(self, factor: float) -> "Topology":
        """Return a copy with all arrival rates multiplied by *factor*."""
        faster = tuple(replace(a, per_s=a.per_s * factor) for a in self.arrivals)
        return replace(self, arrivals=faster)
