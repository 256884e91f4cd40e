"""Notices of stalled operators, which are idle although records wait for them."""

from collections.abc import Iterable

from sojourn.act.stall import stalled
from sojourn.measure.observation import Observation
from sojourn.topology import Topology

__all__ = ["Stalls"]

_DAY_S = 86_400
# Longer than the end of a batch, or the restart of a query.
_NOTICED_S = 15.0


class Stalls:
    """The operators that are stalled, and since when; *midnight_s* as in `Knowledge`."""

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
            if self._at_s - since_s >= _NOTICED_S:
                since.setdefault(since_s, []).append(name)
        return tuple(self._text(names, since_s) for since_s, names in sorted(since.items()))

    def _text(self, names: Iterable[str], since_s: float) -> str:
        return (
            f"{', '.join(names)}: no record was processed since {self._time_of_day(since_s)} "
            "although records wait; processors are idle, so none are added. Check that Spark "
            "reads from Kafka (`sojourn logs` has the logs of Spark and of hosts), and that "
            "executors can reach the brokers at their advertised addresses"
        )

    def _time_of_day(self, at_s: float) -> str:
        of_day_s = int(self._midnight_s + at_s) % _DAY_S
        return f"{of_day_s // 3600:02}:{of_day_s // 60 % 60:02}:{of_day_s % 60:02}"
