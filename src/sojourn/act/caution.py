"""When a change is worth its trouble: times between changes, confirmation, no flapping."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf, sqrt
from typing import Annotated

from sojourn.act.quiet import QuietHours
from sojourn.errors import BadInput
from sojourn.knowledge import Decision, Knowledge
from sojourn.topology import Topology

__all__ = ["Caution"]

# So many times what chance does to one look: where it was chosen because it differs, and
# where many are compared.
_SELECTED, _LOOKED_AT = 2.0, 1.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Caution:
    """How much it takes to change a running application.

    Processors are given for *margin* more load, or for a standard error of the measured load
    if that is more. For *calm* T_ra an operator that got more keeps it, unless the load plainly
    changed, and one that gave up some gets them back only when more arrives, or the target is
    surely missed.
    """

    t_ra_s: Annotated[float, "time between two changes that can wait (T_ra)"] = 30.0
    margin: Annotated[float, "part of the load on top that processors are given for"] = 0.15
    sigmas: Annotated[float, "standard errors of the load that they are kept for"] = 3.0
    confirm: Annotated[int, "observations in a row that must agree on fewer processors"] = 6
    least_gain: Annotated[float, "part of the mean that moving processors must save"] = 0.05
    disturbed: Annotated[float, "part of the time that changes which can wait may disturb"] = (
        0.05
    )
    price: Annotated[
        float, "seconds of all processors that giving some up must save for a second of pause"
    ] = 10.0
    calm: Annotated[float, "so many T_ra what was given or taken stays at the same load"] = 10.0
    quiet: Annotated[tuple[QuietHours, ...], "hours in which nothing is changed"] = ()

    def __post_init__(self) -> None:
        for name in ("t_ra_s", "margin", "sigmas", "least_gain", "price", "calm"):
            value = getattr(self, name)
            if not 0 <= value <= (inf if name == "t_ra_s" else 1e6):
                raise BadInput(f"caution: {name} is {value}; write 0 or more")
        if not 0 < self.disturbed <= 1:
            raise BadInput(f"caution: disturbed is {self.disturbed}; write a part of 1")
        if self.confirm < 1:
            raise BadInput(f"caution: confirm is {self.confirm}; write 1 or more")

    def given_for(self, uncertainty: float) -> float:
        """Return by which part more load than measured processors are given for."""
        return min(1.0, max(self.margin, min(1.0, self.sigmas) * uncertainty))

    def kept_for(self, uncertainty: float) -> float:
        """Return by which part more load than measured processors are kept for."""
        return min(1.0, max(self.margin, self.sigmas * uncertainty))

    def busiest(self, knowledge: Knowledge, topology: Topology) -> float:
        """Return how many times the load the busiest of the last observations had."""
        lately = [o.arrivals_per_s for o in knowledge.observations if o.usable][-self.confirm :]
        return max(lately, default=0.0) / topology.arrivals_per_s

    def quiet_now(self, knowledge: Knowledge) -> str:
        """Return which quiet hours it is now; nothing if none."""
        now_s = knowledge.midnight_s + knowledge.at_s
        return next((str(hours) for hours in self.quiet if hours.cover(now_s)), "")

    def too_soon(self, knowledge: Knowledge) -> str:
        """Return why it is too soon for a change that could wait; nothing if it is not."""
        since_s = knowledge.at_s - knowledge.changed_at_s
        costly_s = knowledge.pause_s / self.disturbed
        if since_s < self.t_ra_s:
            return f"the last change was {since_s:.3g} s ago, and T_ra is {self.t_ra_s:g} s"
        if since_s < costly_s:
            return (
                f"changes pause operators for {knowledge.pause_s:.3g} s, so one that can wait "
                f"comes {costly_s:.3g} s after the last, which was {since_s:.3g} s ago"
            )
        return ""

    def pays(self, pause_s: float, gain_s: float) -> bool:
        """Tell whether roots save in some T_ra what those in a pause wait, half of it each."""
        return pause_s * pause_s / 2 <= gain_s * self.calm * self.t_ra_s

    def saves(self, knowledge: Knowledge, part: float) -> bool:
        """Tell whether giving up a part of all processors saves more than its pause costs.

        They are saved for as long as nothing has changed lately, at least for some T_ra.
        """
        lasts_s = max(self.calm * self.t_ra_s, knowledge.at_s - knowledge.changed_at_s)
        return part * lasts_s >= self.price * knowledge.pause_s

    def confirmed(
        self, knowledge: Knowledge, wanted: Mapping[str, int]
    ) -> dict[str, int] | None:
        """Return the most that each of the last observations wanted; None of too few.

        Those before the last change do not count: it was made on them.
        """
        before = [
            episode.decision.wanted
            for episode in knowledge.episodes[len(knowledge.episodes) - self.confirm + 1 :]
            if episode.decision.wanted is not None
            and episode.decision.at_s > knowledge.changed_at_s
        ]
        if len(before) + 1 < self.confirm:
            return None
        return {name: max([k, *(w[name] for w in before)]) for name, k in wanted.items()}

    def undone(
        self,
        knowledge: Knowledge,
        after: Mapping[str, int],
        offered: Mapping[str, float],
        noise: Mapping[str, float],
        goal: str,
    ) -> dict[str, int]:
        """Return the operators whose change to *after* would undo another at the same load.

        With each goes the number that it then got. For some time any change back counts; for
        as long as is remembered, one to where an operator once had too few. What was done for
        another *goal* does not.
        """
        recent_s = knowledge.at_s - self.calm * self.t_ra_s
        undone: dict[str, int] = {}
        for name, k in after.items():
            for decision, before, changed in _changes_back(knowledge, name, k):
                if decision.goal != goal or name not in decision.offered:
                    continue
                then, now = decision.offered[name], offered[name]
                chance = self._chance(decision, name, noise)
                if k > knowledge.allocation[name]:  # more of it is no reason to wait
                    same = now <= then * (1 + chance)
                else:
                    same = self._unchanged(knowledge, decision, name, now, noise)
                too_few = k <= before < changed and now >= then * (1 - chance)
                if too_few or (same and decision.at_s >= recent_s):
                    undone[name] = max(changed, undone.get(name, 0))
        return undone

    def _chance(self, decision: Decision, name: str, noise: Mapping[str, float]) -> float:
        """Return by which part the load of an operator may differ from then by chance."""
        return self.sigmas * sqrt(decision.noise[name] ** 2 + noise[name] ** 2)

    def _unchanged(
        self,
        knowledge: Knowledge,
        since: Decision,
        name: str,
        now: float,
        noise: Mapping[str, float],
    ) -> bool:
        """Tell whether the load never plainly differed from what it is now *since* a change.

        What the change was made on may have been a single look; later ones know better.
        """
        later = [
            decision
            for decision in (episode.decision for episode in knowledge.episodes)
            if decision.at_s >= since.at_s and name in decision.offered
        ]
        return all(
            abs(now - decision.offered[name])
            <= max(self.margin, times * self._chance(decision, name, noise))
            * max(now, decision.offered[name])
            for decision in later
            # what chance makes high is what makes for a change, so that counts for less
            for times in (_SELECTED if decision is since else _LOOKED_AT,)
        )


def _changes_back(
    knowledge: Knowledge, name: str, k: int
) -> Iterator[tuple[Decision, int, int]]:
    """Yield the changes of an operator that went the other way: why, from what, to what."""
    step = k - knowledge.allocation[name]
    for episode in knowledge.episodes:
        if episode.cost is not None and name in episode.cost.changed:
            before, after = episode.cost.changed[name]
            if step * (after - before) < 0:
                yield episode.decision, before, after
