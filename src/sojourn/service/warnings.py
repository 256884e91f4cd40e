"""What the loop warns of: a target that no allocation meets, and stalled operators."""

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import replace
from math import inf

from sojourn.act.latency import floor_s, lowest_s, not_reached
from sojourn.act.stall import stalled
from sojourn.decide.target import Target
from sojourn.errors import TargetBelowFloor
from sojourn.measure.observation import Observation
from sojourn.measure.observed import LEAST_SAMPLES
from sojourn.model.network import hot_key
from sojourn.topology import Topology

# Service times drift, but computing a percentile takes some milliseconds.
_EVERY_TURNS = 10
# Longer than the end of a batch, or the restart of a query.
_STALLED_S = 15.0


def floor_warning(
    topology: Topology,
    target: Target,
    known: Container[str],
    seen: Sequence[Observation] = (),
) -> str:
    """Return why no number of processors meets *target*; "" if some may.

    Operators that are not *known* count as 0 seconds, and cores as unlimited, so the warning
    holds for any service times of the others. A latency that was *seen* is never called
    impossible.
    """
    unknown = [operator for operator in topology.operators if operator.name not in known]
    least = replace(topology, cores=None).with_operators(
        *(replace(operator, service_s=0.0, cpu_s=None) for operator in unknown)
    )
    seconds = floor_s(least, model="gigk", statistic=target.statistic)
    # infinite if percentiles of this topology cannot be computed
    if not target.seconds < seconds < inf:
        return ""
    lowest = lowest_s(seen, target.statistic)
    if lowest < seconds:  # a measured latency, with waiting, is lower: the model is wrong
        return "" if lowest <= target.seconds else not_reached(target, lowest)
    # if the target is met without hot keys, the warning names the hottest key as the cause
    keyless = least.with_operators(*(replace(o, hottest_key=0.0) for o in least.operators))
    alone_s = floor_s(keyless, model="gigk", statistic=target.statistic)
    hot = hot_key(least) if alone_s <= target.seconds else None
    return str(TargetBelowFloor(str(target), seconds, "" if hot is None else hot.said))


class Floor:
    """Compares the target with the floor of latency, of the service times measured so far.

    *warning* is the result. `saw` and `judge` return whether it is new: each target is warned
    of once.
    """

    def __init__(self) -> None:
        self.warning = ""
        self._samples: Counter[str] = Counter()
        self._judged: tuple[Target, frozenset[str]] | None = None
        self._warned: set[Target] = set()
        self._turns = 0

    def saw(self, seen: Sequence[Observation], topology: Topology, target: Target) -> bool:
        """Add the last observation; *topology* contains the measurements so far."""
        observation = seen[-1]
        for name, operator in observation.operators.items():
            self._samples[name] += int(operator.samples)
        self._turns += 1
        if self._judged == (target, self._known) and self._turns % _EVERY_TURNS:
            return False
        return self.judge(seen, topology, target)

    def judge(self, seen: Sequence[Observation], topology: Topology, target: Target) -> bool:
        self._judged = target, self._known
        self.warning = floor_warning(topology, target, self._known, seen) if self._known else ""
        news = bool(self.warning) and target not in self._warned
        if news:
            self._warned.add(target)
        return news

    @property
    def _known(self) -> frozenset[str]:
        return frozenset(n for n, number in self._samples.items() if number >= LEAST_SAMPLES)


class Stalls:
    """Operators that are idle although records wait; *midnight_s* is as in `Knowledge`."""

    def __init__(self, midnight_s: float = 0.0) -> None:
        self._midnight_s = midnight_s
        self._since_s: dict[str, float] = {}
        self._at_s = 0.0

    def saw(self, observation: Observation, topology: Topology) -> None:
        """Add the observation of a turn; one that is not usable changes nothing."""
        if not observation.usable:
            return
        since_s, before = observation.since_s, self._since_s
        now = stalled(topology, observation)
        # a new mapping, because other threads may read the old one
        self._since_s = {name: before.get(name, since_s) for name in now}
        self._at_s = observation.at_s

    @property
    def notices(self) -> tuple[str, ...]:
        """One text for all operators stalled since the same time, the same at each turn."""
        since: dict[float, list[str]] = {}
        for name, since_s in self._since_s.items():
            if self._at_s - since_s >= _STALLED_S:
                since.setdefault(since_s, []).append(name)
        return tuple(
            f"{', '.join(names)}: no record was processed since {self._time_of_day(since_s)} "
            "although records wait; processors are idle, so none are added. Check that Spark "
            "reads from Kafka (`sojourn logs` has the logs of Spark and of hosts), and that "
            "executors can reach the brokers at their advertised addresses"
            for since_s, names in sorted(since.items())
        )

    def _time_of_day(self, at_s: float) -> str:
        of_day_s = int(self._midnight_s + at_s) % 86_400
        return f"{of_day_s // 3600:02}:{of_day_s // 60 % 60:02}:{of_day_s % 60:02}"
