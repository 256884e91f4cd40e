"""DRS: the fewest processors that keep a target, or the best use of a given number.

Both schedulers of the papers (DRS-17 IV-B) with what a running application needs beside
them: it goes up at once and down only when several observations agree, never takes away
while a backlog is worked off, allows for what chance does to measurements, learns by how
much waits are underestimated and what a change costs, adds no processors that would find no
core to run on, and says why it does nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Annotated, Literal

from sojourn.act.aim import Goal, aim
from sojourn.act.caution import Caution
from sojourn.act.cores import within_cores
from sojourn.act.holt import Holt
from sojourn.act.outlook import (
    Outlook,
    at_least_s,
    figures,
    floor_s,
    stricter,
    underestimated,
)
from sojourn.act.policy.base import PolicyContext
from sojourn.act.recommendation import held
from sojourn.act.situation import Situation, situation
from sojourn.act.startable import startable
from sojourn.errors import BadTarget
from sojourn.knowledge import (
    Decision,
    Expected,
    Knowledge,
    allocation_text,
    batch_ended,
    measured_s,
)
from sojourn.measure.smooth import Smoother
from sojourn.measure.steady import Steady
from sojourn.model.cores import cores_headroom, slowed
from sojourn.topology import Topology
from sojourn.topology.load import StationLoad

__all__ = ["Drs", "policy"]

# What is sure is so many standard errors away from what is most likely.
_SURELY = 2.0
# Nothing is planned for a load that keeps more than this part of the cores busy, because of
# what might arrive: it would take forever, and processors would not help.
_MOST_OF_CORES = 0.95
# Operators with less to do than this are idle.
_LEAST_ERLANGS = 1e-9
# Where nothing pauses for a change there is no reason to wait for long with the next: so many
# observations are between two that can wait, and a backlog is worked off in as many.
_SOON = 5


def policy(context: PolicyContext, /) -> "Drs":
    """Return the policy with its defaults: a short T_ra where changes pause nothing."""
    drs = Drs(goal=Goal(target=context.target, most=context.most))
    if context.pauses or context.every_s is None:
        return drs
    soon_s = _SOON * context.every_s
    return replace(drs, caution=replace(drs.caution, t_ra_s=soon_s), drain_s=soon_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drs:
    """Keeps a target with the fewest processors, or makes the best of all there are.

    With *trigger* `measured` and *low_s* (T_min) it is DRS as published. By default what the
    model expects counts, which sees a shortage before it hurts.
    """

    goal: Goal
    caution: Caution = field(default_factory=Caution)
    smooth: Smoother = field(default_factory=Steady)
    low_s: Annotated[
        float | None, "processors are taken away only while latency is below this (T_min)"
    ] = None
    drain_s: Annotated[float, "time in which a backlog should be worked off"] = 60.0
    trigger: Annotated[
        Literal["expected", "measured"], "which latency above the target adds processors"
    ] = "expected"
    prompt: Annotated[bool, "processors are added without waiting for T_ra"] = True
    forecast: Annotated[Holt | None, "decide for where the load is going"] = None

    def __post_init__(self) -> None:
        if self.goal.target is None and self.goal.most is None:
            raise BadTarget("there is no target, and no number of processors; give one of them")
        if not 0 < self.drain_s < inf:
            raise BadTarget(f"a backlog worked off in {self.drain_s} s; write more than 0")

    def __call__(self, knowledge: Knowledge, /) -> Decision:
        """Return what should be done now."""
        seen = self.smooth(knowledge.observations)
        if not seen.usable or seen.warming:
            return held(knowledge)
        now = situation(
            knowledge,
            seen,
            drain_s=self.drain_s,
            forecast=self.forecast,
            model=self.goal.model,
        )
        return within_cores(_Turn(self, knowledge, now).decision(), knowledge)


class _Turn:
    """One decision, step by step: too slow, too much, or in the wrong place."""

    def __init__(self, drs: Drs, knowledge: Knowledge, now: Situation) -> None:
        self._startable = startable(knowledge)
        now = replace(now, topology=self._startable.bound(now.topology))
        self._drs, self._goal, self._knowledge, self._now = drs, drs.goal, knowledge, now
        self._current = dict(knowledge.allocation)
        self._statistic = drs.goal.target.statistic if drs.goal.target else "mean"
        self._expected = self._predicted(now.topology, self._current)
        self._measured_s = measured_s(now.seen, self._statistic)
        self._floor_s = inf
        if drs.goal.target is not None and drs.trigger == "expected":
            self._floor_s = floor_s(
                now.topology, model=drs.goal.model, statistic=self._statistic
            )
        # Processors are added for what is sure, and taken away for what is at all likely:
        # of how much longer waits are than expected, and of how much more may arrive.
        self._learn(_SURELY)
        self._short, self._excused = self._shortage(), ""
        if self._short and batch_ended(knowledge.observations) and not self._overloaded():
            self._short, self._excused = "", self._short
        band = drs.caution.given_for
        if not self._short:
            self._learn(0.0)
            band = drs.caution.kept_for
        more = max(1 + band(now.uncertainty), drs.caution.busiest(knowledge, now.topology))
        self._safe = now.topology.scaled(min(more, max(1.0, self._carried_by_cores())))
        self._wanted = aim(
            self._safe,
            replace(drs.goal, target=self._target),
            now.needs,
            asked=drs.goal.target,
        )

    def decision(self) -> Decision:
        """Return what to do."""
        if self._short:
            return self._more(self._short)
        if self._excused:
            return self._hold(
                f"{self._excused}, but a batch has just ended, for which records wait: nothing "
                "is added unless it stays so"
            )
        if self._now.behind:
            waiting = ", ".join(f"{n:.0f} at {name}" for name, n in self._now.behind.items())
            return self._hold(
                f"catching up, more are waiting than usual ({waiting}): nothing is taken away"
            )
        if self._goal.target is not None and self._fewer() and self._below_t_min():
            return self._less()
        return self._moved()

    # -- too slow ---------------------------------------------------------------------------

    def _shortage(self) -> str:
        """Return what is missing; nothing where all is well."""
        target, full = self._goal.target, self._overloaded()
        if full and self._drs.trigger == "expected":
            return f"{', '.join(full)} cannot keep up"
        lacking = [name for name, k in self._now.needs.items() if k > self._current[name]]
        if lacking and self._drs.trigger == "expected":
            waiting = sum(self._now.behind.values())
            return f"{waiting:.0f} are waiting, too many to work off in {self._drs.drain_s:g} s"
        if target is None or self._target is None:
            return ""
        if self._drs.trigger == "measured":
            short = self._measured_s > target.seconds
            return f"{self._statistic} is {self._measured_s:.3g} s, above {target}" * short
        expected_s = self._seconds(self._expected)
        if expected_s > self._target.seconds:
            learned = f" (waits are {self._times:.2g} times as long as the model says)"
            learned *= self._times > 1
            return f"{self._expected_text(self._times)}, above {target}{learned}"
        return ""

    def _overloaded(self) -> list[str]:
        """Return the operators to which more comes than their processors can serve."""
        runs = self._startable.runs(self._current)
        loads = self._loads(runs)
        return [name for name, k in runs.items() if k < loads[name].min_processors]

    def _more(self, short: str) -> Decision:
        wanted, most = self._wanted.allocation, self._goal.most
        after = {name: max(k, wanted[name]) for name, k in self._current.items()}
        if (most is not None and sum(after.values()) > most) or self._goal.nodes is not None:
            after = wanted
        if after == self._current:
            return self._hold(f"{short}, but {self._note or 'no plan is better'}")
        undone = self._undone(after)
        if self._no_better(after, undone):
            best = self._note or "there are no more processors"
            return self._hold(
                f"{short}, but {best}: they are shared out as well as can be told"
            )
        if undone and self._on_time():
            return self._hold(
                f"{short}, but {', '.join(undone)} gave processors up at the same load and the "
                f"target is kept: it stays"
            )
        soon = "" if self._drs.prompt else self._drs.caution.too_soon(self._knowledge)
        if soon:
            return self._hold(f"{short}, but {soon}")
        return self._change(after, f"{short}: {allocation_text(after)}{self._noted()}")

    def _on_time(self) -> bool:
        """Tell whether operators keep up and the target is kept, but for chance.

        Since the last change, that is: what was measured before says nothing of it.
        """
        target, sigmas = self._goal.target, self._drs.caution.sigmas
        surely = {
            name: erlangs * (1 - sigmas * self._now.offered_noise[name])
            for name, erlangs in self._now.offered.items()
        }
        if target is None or any(k <= surely[name] for name, k in self._current.items()):
            return False
        changed_at_s = self._knowledge.changed_at_s
        since = [o for o in self._knowledge.observations if o.usable and o.at_s > changed_at_s]
        return at_least_s(since, target.statistic, _SURELY) <= target.seconds

    def _carried(self, allocation: Mapping[str, int]) -> float:
        """Return how many times the load the slowest operator could carry."""
        loads = self._loads(allocation)
        return min(
            k / max(loads[name].erlangs, _LEAST_ERLANGS) for name, k in allocation.items()
        )

    def _no_better(self, after: Mapping[str, int], undone: Mapping[str, int]) -> bool:
        """Tell whether as many processors, shared out anew, may be better only by chance."""
        if sum(after.values()) != sum(self._current.values()):
            return False
        now, then = self._carried(self._current), self._carried(after)
        if now <= 1 < then and not undone:
            return False
        return then <= now * (1 + self._drs.caution.kept_for(self._now.uncertainty))

    # -- too much ---------------------------------------------------------------------------

    def _fewer(self) -> bool:
        return sum(self._wanted.allocation.values()) < sum(self._current.values())

    def _below_t_min(self) -> bool:
        return self._drs.low_s is None or self._measured_s < self._drs.low_s

    def _less(self) -> Decision:
        wanted = self._drs.caution.confirmed(self._knowledge, self._wanted.allocation)
        after = None if wanted is None else self._shrunk(wanted)
        if after is None or sum(after.values()) >= sum(self._current.values()):
            fewer = self._would_do(self._wanted.allocation)
            return self._hold(f"{fewer}, if the next observations say so too")
        plenty = self._would_do(after)
        undone = self._undone(after)
        after |= {name: min(got, self._current[name]) for name, got in undone.items()}
        more = sum(after.values()) >= sum(self._current.values())
        if more or (undone and not self._met(after)):
            return self._hold(f"{plenty}, but what was added at this load stays for a while")
        if soon := self._drs.caution.too_soon(self._knowledge):
            return self._hold(f"{plenty}, but {soon}")
        saved = 1 - sum(after.values()) / sum(self._current.values())
        if not self._drs.caution.saves(self._knowledge, saved):
            pause_s = self._knowledge.pause_s
            return self._hold(f"{plenty}, too few to be worth a pause of {pause_s:.3g} s")
        return self._change(
            after, f"{self._would_do(after)}: {allocation_text(after)}{self._noted()}"
        )

    def _would_do(self, allocation: Mapping[str, int]) -> str:
        fewer, now = sum(allocation.values()), sum(self._current.values())
        return f"{fewer} of {now} processors would do"

    def _shrunk(self, wanted: Mapping[str, int]) -> dict[str, int]:
        """Return *wanted* without adding anywhere, if the target is met so too."""
        if self._goal.nodes is not None:
            return dict(wanted)
        less = {name: min(k, wanted[name]) for name, k in self._current.items()}
        return less if self._met(less) else dict(wanted)

    # -- in the wrong place -----------------------------------------------------------------

    def _moved(self) -> Decision:
        total = sum(self._current.values())
        if self._goal.target is None and self._goal.most is not None:
            total = self._goal.most
        here = replace(self._goal, target=None, most=total, nodes=None)
        best = aim(self._now.topology, here).allocation
        if best == self._current:
            return self._hold(self._well())
        if sum(best.values()) != sum(self._current.values()):
            why = f"{sum(best.values())} processors are to be used: {allocation_text(best)}"
        else:
            gain_s, why = self._gain(best)
            if against := self._against(best, gain_s):
                return self._hold(f"{self._well()}; {why}, {against}")
        if soon := self._drs.caution.too_soon(self._knowledge):
            return self._hold(f"{why}, but {soon}")
        return self._change(best, why)

    def _gain(self, best: Mapping[str, int]) -> tuple[float, str]:
        """Return by how much the mean would be shorter, and so in words."""
        now, then = self._expected, self._predicted(self._now.topology, best)
        if now is None or then is None:
            return inf, f"{allocation_text(best)} would keep up"
        gain_s = now.mean_s - then.mean_s
        part = gain_s / now.mean_s if now.mean_s > 0 else 0.0
        return gain_s, f"{allocation_text(best)} is {part:.1%} faster with as many processors"

    def _against(self, best: Mapping[str, int], gain_s: float) -> str:
        """Return what speaks against moving processors; nothing if nothing does."""
        caution, known = self._drs.caution, self._knowledge
        if self._expected and gain_s < caution.least_gain * self._expected.mean_s:
            return "too little to move"
        if caution.confirmed(known, self._wanted.allocation) is None:
            return "if the next observations say so too"
        if not caution.pays(known.pause_s, gain_s):
            return f"less than a pause of {known.pause_s:.3g} s costs"
        if undone := self._undone(best):
            return f"but it would undo at the same load what {', '.join(undone)} just got"
        if not self._met(best):
            return "but it would miss the target if somewhat more arrives"
        return ""

    def _met(self, allocation: Mapping[str, int]) -> bool:
        """Tell whether the target is met, with all that chance may add to the load."""
        if self._target is None:
            return True
        then = self._seconds(self._predicted(self._safe, allocation))
        return then <= self._target.seconds

    def _well(self) -> str:
        if self._goal.target is None:
            return f"{self._expected_text()}, the best of these"
        near = self._expected is None or self._expected.seconds > self._goal.target.seconds
        within = "as near as can be to" if near else "within"
        return f"{self._expected_text()}, {within} {self._goal.target}"

    def _expected_text(self, times: float = 1.0) -> str:
        """Return what is expected where waits are so many *times* as long as the model says."""
        seconds = self._seconds(self._expected)
        if times > 1 and self._floor_s < seconds < inf:
            seconds = self._floor_s + times * (seconds - self._floor_s)
        if seconds == inf:
            return "waits without end are expected"
        return f"{self._statistic} of {seconds:.3g} s is expected"

    # -- what all of them share -------------------------------------------------------------

    def _predicted(self, topology: Topology, allocation: Mapping[str, int]) -> Outlook | None:
        runs = self._startable.runs(allocation)
        return figures(topology, runs, model=self._goal.model, statistic=self._statistic)

    def _carried_by_cores(self) -> float:
        """Return for how many times the load processors could find cores to run on."""
        return _MOST_OF_CORES * cores_headroom(self._now.topology)

    def _loads(self, allocation: Mapping[str, int]) -> Mapping[str, StationLoad]:
        """Return what operators carry while these processors share the cores."""
        return slowed(self._now.topology, allocation).loads

    def _seconds(self, outlook: Outlook | None) -> float:
        return inf if outlook is None else outlook.seconds

    def _learn(self, surely: float) -> None:
        """Set the target that the model must meet, so that the measured one is met."""
        self._times, self._target = 1.0, self._goal.target
        if self._target is not None and self._floor_s < inf:
            self._times = underestimated(
                self._knowledge, self._target, self._floor_s, surely=surely
            )
            self._target = stricter(self._target, self._floor_s, self._times)

    @property
    def _note(self) -> str:
        """What is not met. The bound of what cannot be started is none that somebody set."""
        ours = self._startable.running and "max_processors" in self._wanted.note
        return "" if ours else self._wanted.note

    def _noted(self) -> str:
        return f" ({self._note})" if self._note else ""

    def _undone(self, after: Mapping[str, int]) -> Mapping[str, int]:
        return self._drs.caution.undone(
            self._knowledge,
            after,
            self._now.offered,
            self._now.offered_noise,
            str(self._goal),
        )

    def _change(self, after: Mapping[str, int], reason: str) -> Decision:
        if quiet := self._drs.caution.quiet_now(self._knowledge):
            return self._hold(f"{reason}, but the hours {quiet} are quiet")
        return self._decided(after, reason)

    def _hold(self, reason: str) -> Decision:
        return self._decided(self._current, reason)

    def _decided(self, after: Mapping[str, int], reason: str) -> Decision:
        if self._startable.running:
            # what does not start stays wanted, and all else is planned without it
            after = {**after, **{name: self._current[name] for name in self._startable.running}}
            reason = f"{reason}; {self._startable}"
        same = dict(after) == self._current
        then = self._expected if same else self._predicted(self._now.topology, after)
        # The model speaks of queues in balance, not of those being worked off.
        balanced = then is not None and not self._now.behind
        expected = self._expectation(then) if balanced and then else None
        return Decision(
            at_s=self._knowledge.at_s,
            before=self._current,
            after=dict(after),
            reason=reason,
            goal=str(self._goal),
            wanted=self._wanted.allocation,
            expected=expected,
            offered=self._now.offered,
            noise=self._now.offered_noise,
        )

    def _expectation(self, outlook: Outlook) -> Expected:
        return Expected(
            statistic=self._statistic,
            seconds=outlook.seconds,
            arrivals_per_s=self._now.topology.arrivals_per_s,
            sojourns_s=outlook.sojourns_s,
        )
