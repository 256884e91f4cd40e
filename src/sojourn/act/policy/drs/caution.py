"""Whether a change is worth its cost: time between changes, confirmation, no flapping."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf, sqrt
from typing import Annotated

from sojourn.act.policy.drs.load_estimate import Situation
from sojourn.decide.objective import percent
from sojourn.errors import BadInput
from sojourn.knowledge import Decision, Knowledge
from sojourn.text import shown
from sojourn.topology import Topology

# Multiples of the tolerance for chance. The observation that caused a change was probably high
# by chance, so it gets more; later ones get a little more because there are many of them.
_SELECTED, _LOOKED_AT = 2.0, 1.3
# The load of a moment is counted over this many seconds, or roots if there are more.
_COUNTED_S, _COUNTED = 10.0, 130
# The part of the time that must have been observed; some observations may be unusable.
_CONFIRMED = 0.85
_DAY_S = 86_400
_TIME = re.compile(r"(\d{1,2}):(\d{2})")


@dataclass(frozen=True, slots=True)
class QuietHours:
    """An interval between two times of day, in seconds after midnight; it may span midnight.

    >>> night = QuietHours.read("22:00-06:00")
    >>> night.cover(23 * 3600), night.cover(3600), night.cover(12 * 3600)
    (True, True, False)
    >>> print(night)
    22:00-06:00
    """

    since_s: float
    until_s: float

    def __post_init__(self) -> None:
        for time_s in (self.since_s, self.until_s):
            if not 0 <= time_s <= _DAY_S:
                raise BadInput(
                    f"{time_s} s after midnight is not a time of day; write 0 to 86400"
                )
        if self.since_s == self.until_s:
            raise BadInput(
                f"quiet hours begin and end at {self.since_s} s; write two different times"
            )

    @classmethod
    def read(cls, text: str) -> "QuietHours":
        """Parse hours such as `22:00-06:00`."""
        since, dash, until = text.partition("-")
        if not dash:
            raise BadInput(f"{shown(text)} is not FROM-UNTIL; write 08:00-18:00")
        return cls(read_time_of_day_s(since), read_time_of_day_s(until))

    def cover(self, time_s: float) -> bool:
        """Return whether a time, in seconds since any midnight, is quiet."""
        of_day_s = time_s % _DAY_S
        if self.since_s < self.until_s:
            return self.since_s <= of_day_s < self.until_s
        return of_day_s >= self.since_s or of_day_s < self.until_s

    def __str__(self) -> str:
        return "-".join(
            f"{int(time_s) // 3600:02}:{int(time_s) % 3600 // 60:02}"
            for time_s in (self.since_s, self.until_s)
        )


def read_time_of_day_s(text: str) -> float:
    """Parse a time of day such as `08:30`, in seconds after midnight.

    >>> read_time_of_day_s("08:30")
    30600.0
    """
    match = _TIME.fullmatch(text.strip())
    if match is None or int(match[2]) > 59 or int(match[1]) * 60 + int(match[2]) > 24 * 60:
        raise BadInput(f"{shown(text)} is not a time of day; write 08:30")
    return 3600.0 * int(match[1]) + 60.0 * int(match[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Caution:
    """The conditions for a change of a running application.

    Processors are added for *margin* more load than measured, or for one standard error of the
    load if that is more.
    """

    t_ra_s: Annotated[float, "minimum time between changes that are not urgent (T_ra)"] = 30.0
    margin: Annotated[float, "extra load to plan for when scaling up, as a fraction"] = 0.15
    sigmas: Annotated[float, "standard errors added to the load when scaling down"] = 3.0
    confirm_s: Annotated[float, "time for which fewer must be enough before scaling down"] = (
        60.0
    )
    least_gain: Annotated[float, "fraction of the mean latency that a move must gain"] = 0.05
    disturbed: Annotated[float, "maximum fraction of time spent in pauses"] = 0.05
    price: Annotated[float, "seconds of all processors to save per second of pause"] = 10.0
    calm: Annotated[float, "multiples of T_ra before a change is undone at the same load"] = (
        10.0
    )
    quiet: Annotated[tuple[QuietHours, ...], "times of day without changes"] = ()

    def __post_init__(self) -> None:
        for name in ("t_ra_s", "margin", "sigmas", "confirm_s", "least_gain", "price", "calm"):
            value = getattr(self, name)
            if not 0 <= value <= (inf if name == "t_ra_s" else 1e6):
                raise BadInput(f"caution: {name} is {value}; write 0 or more")
        if not 0 < self.disturbed <= 1:
            raise BadInput(
                f"caution: disturbed is {self.disturbed}; it must be between 0 and 1"
            )

    def given_for(self, uncertainty: float) -> float:
        """Return the growth of the load, as a fraction, for which processors are added."""
        return min(1.0, max(self.margin, min(1.0, self.sigmas) * uncertainty))

    def kept_for(self, uncertainty: float) -> float:
        """Return the growth of the load, as a fraction, for which processors are kept."""
        return min(1.0, max(self.margin, self.sigmas * uncertainty))

    def busiest(self, knowledge: Knowledge, topology: Topology) -> float:
        """Return the highest recent load, as a multiple of the load of *topology*.

        It is that of some seconds, because the highest of many short counts is chance.
        """
        since_s = knowledge.at_s - self.confirm_s
        highest, roots, lasted_s = 0.0, 0.0, 0.0
        for seen in reversed(knowledge.observations):
            if seen.at_s <= since_s:
                break
            if seen.usable:
                roots += seen.arrivals_per_s * seen.lasted_s
                lasted_s += seen.lasted_s
            if lasted_s >= _COUNTED_S or roots >= _COUNTED:
                highest = max(highest, roots / lasted_s)
                roots = lasted_s = 0.0
        if highest == 0 and lasted_s > 0:  # it has just started
            highest = roots / lasted_s
        return highest / topology.arrivals_per_s

    def quiet_now(self, knowledge: Knowledge) -> str:
        """Return the current quiet hours; empty outside them."""
        now_s = knowledge.midnight_s + knowledge.at_s
        return next((str(hours) for hours in self.quiet if hours.cover(now_s)), "")

    def too_soon(self, knowledge: Knowledge) -> str:
        """Return why it is too soon for a non-urgent change; empty if it is not."""
        since_s = knowledge.at_s - knowledge.changed_at_s
        costly_s = knowledge.pause_s / self.disturbed
        if since_s < self.t_ra_s:
            return f"the last change was {since_s:.3g} s ago; T_ra is {self.t_ra_s:g} s"
        if (budget := knowledge.budget) is not None:
            objective, pause_s = budget.objective, knowledge.pause_s
            if since_s < objective.change_every_s(pause_s):
                return (
                    f"a change pauses operators for {pause_s:.3g} s and misses a slice; "
                    f"{percent(objective.kept)} permit that once in "
                    f"{objective.change_every_s(pause_s):.0f} s, and the last was "
                    f"{since_s:.0f} s ago"
                )
        if since_s < costly_s:
            return (
                f"changes pause operators for {knowledge.pause_s:.3g} s and are kept "
                f"{costly_s:.3g} s apart; the last was {since_s:.3g} s ago"
            )
        return ""

    def pays(self, pause_s: float, gain_s: float) -> bool:
        """Return whether a gain outweighs a pause.

        The roots that arrive in the pause, in proportion to its length, wait for half of it on
        average; the gain counts for *calm* times T_ra.
        """
        return pause_s * pause_s / 2 <= gain_s * self.calm * self.t_ra_s

    def saves(self, knowledge: Knowledge, part: float) -> bool:
        """Return whether removing a part of all processors saves more than its pause costs.

        The saving is expected to last for the time since the last change, at least for *calm*
        times T_ra.
        """
        lasts_s = max(self.calm * self.t_ra_s, knowledge.at_s - knowledge.changed_at_s)
        return part * lasts_s >= self.price * knowledge.pause_s

    def confirmed(
        self, knowledge: Knowledge, wanted: Mapping[str, int]
    ) -> dict[str, int] | None:
        """Return the maximum of the last recommendations; None if there are too few."""
        every_s = knowledge.observations[-1].lasted_s
        # half an interval of tolerance, because clocks are not exact
        since_s = knowledge.at_s - self.confirm_s + every_s / 2
        before = list[Mapping[str, int]]()
        for episode in reversed(knowledge.episodes):
            if episode.decision.at_s <= since_s:
                break
            if episode.decision.wish.wanted is not None:
                before.append(episode.decision.wish.wanted)
        if (len(before) + 1) * every_s < _CONFIRMED * self.confirm_s:
            return None
        return {name: max([k, *(w[name] for w in before)]) for name, k in wanted.items()}

    def undone(self, now: Situation, after: Mapping[str, int]) -> dict[str, int]:
        """Return the operators whose change to *after* would undo an earlier one at this load.

        The value is the number of processors after the earlier change. A change back is an undo
        within *calm* times T_ra; a change back to a number that was too few is one for as long
        as the earlier change is remembered. Changes for another goal do not count.
        """
        knowledge, noise, goal = now.knowledge, now.offered_noise, str(now.goal)
        recent_s = knowledge.at_s - self.calm * self.t_ra_s
        undone: dict[str, int] = {}
        for name, k in after.items():
            for decision, before, changed in _changes_back(knowledge, name, k):
                wish = decision.wish
                if wish.goal != goal or name not in wish.offered:
                    continue
                then, offered = wish.offered[name], now.offered[name]
                chance = self._chance(decision, name, noise)
                if k > knowledge.allocation[name]:  # a higher load is a reason to go up again
                    same = offered <= then * (1 + chance)
                else:
                    same = self._unchanged(knowledge, decision, name, offered, noise)
                too_few = k <= before < changed and offered >= then * (1 - chance)
                if too_few or (same and decision.at_s >= recent_s):
                    undone[name] = max(changed, undone.get(name, 0))
        return undone

    def _chance(self, decision: Decision, name: str, noise: Mapping[str, float]) -> float:
        """Return the relative difference of load between then and now that chance explains."""
        return self.sigmas * sqrt(decision.wish.noise[name] ** 2 + noise[name] ** 2)

    def _unchanged(
        self,
        knowledge: Knowledge,
        since: Decision,
        name: str,
        now: float,
        noise: Mapping[str, float],
    ) -> bool:
        """Return whether the load has been the same *since* a change, within chance.

        The change may be based on a single observation, so later ones count too.
        """
        every_s = knowledge.observations[-1].lasted_s
        later = [
            decision
            for decision in (episode.decision for episode in knowledge.remembered)
            if decision.at_s >= since.at_s and name in decision.wish.offered
        ]
        return all(
            abs(now - decision.wish.offered[name])
            <= max(self.margin, times * self._chance(decision, name, noise))
            * max(now, decision.wish.offered[name])
            for decision in later
            for times in (_tolerance(1 + (decision.at_s - since.at_s) / every_s),)
        )


def _tolerance(looks: float) -> float:
    """Return the multiple for an average of so many observations since a change.

    The one that caused the change is among them, with that part of its weight.

    >>> _tolerance(1), _tolerance(10)
    (2.0, 1.37)
    """
    return _LOOKED_AT + (_SELECTED - _LOOKED_AT) / looks


def _changes_back(
    knowledge: Knowledge, name: str, k: int
) -> Iterator[tuple[Decision, int, int]]:
    """Yield changes of an operator in the opposite direction: decision, before, after."""
    step = k - knowledge.allocation[name]
    for episode in knowledge.remembered:
        if episode.cost is not None and name in episode.cost.changed:
            before, after = episode.cost.changed[name]
            if step * (after - before) < 0:
                yield episode.decision, before, after
