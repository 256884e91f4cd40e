"""DRS: the fewest processors that keep a target, or the best use of a given number.

Both schedulers of the papers (DRS-17 IV-B) with what a running application needs beside
them: it goes up at once and down only when several observations agree, never takes away
while a backlog is worked off, allows for what chance does to measurements, learns by how
much waits are underestimated and what a change costs, and says why it does nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, inf, sqrt
from statistics import fmean
from typing import Literal

from sojourn.act.aim import Goal, aim
from sojourn.act.caution import Caution
from sojourn.act.holt import Holt
from sojourn.act.situation import Situation, situation
from sojourn.decide.plan import Target
from sojourn.errors import BadTarget, EndlessLoop, UnstableStation
from sojourn.knowledge import Decision, Expected, Knowledge, allocation_text, measured_s
from sojourn.measure.observation import Observation
from sojourn.measure.sketch import Sketch
from sojourn.measure.smooth import Smoother
from sojourn.measure.steady import Steady
from sojourn.model.network import PERCENTILES, mean_s, operator_figures, predict, stations
from sojourn.topology import Topology

__all__ = ["Drs", "policy"]

# How much waits are underestimated is learned from so many outcomes at most, with so many
# roots at least; beyond so many times it is no longer the waits.
_OUTCOMES, _LEAST_ROOTS, _MOST_TIMES = 24, 200, 4.0
_SURELY = 2.0
# The least wait that is aimed at, in parts of the time without any.
_LEAST_PART = 0.02
# Operators with less to do than this are idle.
_LEAST_ERLANGS = 1e-9
# Loads that differ by so many standard errors are not the same.
_CHANCE = 3.0
# Waits much shorter than this part of what the target leaves for them say nothing.
_LEAST_WAIT = 0.1


def policy(target: Target, most: int | None) -> "Drs":
    """Return the policy with its defaults."""
    return Drs(goal=Goal(target=target, most=most))


@dataclass(frozen=True, slots=True, kw_only=True)
class Drs:
    """Keeps a target with the fewest processors, or makes the best of all there are.

    With *trigger* `measured` processors are only added when the measured latency is above
    the target, and with *low_s* (T_min) only taken away while it is below: DRS as published.
    By default what the model expects counts, which sees a shortage before it hurts.
    *drain_s* is the time in which a backlog should be worked off. With *prompt* processors
    are added without waiting for T_ra.
    """

    goal: Goal
    caution: Caution = field(default_factory=Caution)
    smooth: Smoother = field(default_factory=Steady)
    low_s: float | None = None
    drain_s: float = 60.0
    trigger: Literal["expected", "measured"] = "expected"
    prompt: bool = True
    forecast: Holt | None = None

    def __post_init__(self) -> None:
        if self.goal.target is None and self.goal.most is None:
            raise BadTarget("there is no target, and no number of processors; give one of them")
        if not 0 < self.drain_s < inf:
            raise BadTarget(f"a backlog worked off in {self.drain_s} s; write more than 0")

    def __call__(self, knowledge: Knowledge, /) -> Decision:
        """Return what should be done now."""
        seen = self.smooth(knowledge.observations)
        if not seen.usable:
            return _held(knowledge, f"what was measured cannot be used: {seen.reason}")
        now = situation(
            knowledge,
            seen,
            drain_s=self.drain_s,
            forecast=self.forecast,
            model=self.goal.model,
        )
        return _Turn(self, knowledge, now).decision()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figures:
    """What the model says of an allocation: the statistic, the mean, times at operators."""

    seconds: float
    mean_s: float
    sojourns_s: Mapping[str, float]


def _figures(
    topology: Topology, allocation: Mapping[str, int], model: str, statistic: str
) -> _Figures:
    operators = operator_figures(topology, allocation, stations(topology, model))
    mean = mean_s(topology, allocation, model=model)
    seconds = mean
    if statistic != "mean":  # a percentile takes some ten times as long to work out
        seconds = predict(topology, allocation, model=model).percentiles_s[statistic]
    return _Figures(
        seconds=seconds,
        mean_s=mean,
        sojourns_s={name: o.wait_s + o.service_s for name, o in operators.items()},
    )


class _Turn:
    """One decision, step by step: too slow, too much, or in the wrong place."""

    def __init__(self, drs: Drs, knowledge: Knowledge, now: Situation) -> None:
        self._drs, self._goal, self._knowledge, self._now = drs, drs.goal, knowledge, now
        self._current = dict(knowledge.allocation)
        self._statistic = drs.goal.target.statistic if drs.goal.target else "mean"
        self._expected = self._predicted(now.topology, self._current)
        self._measured_s = measured_s(now.seen, self._statistic)
        self._floor_s = self._without_waiting_s()
        # Processors are added for what is sure, and taken away for what is at all likely:
        # of how much longer waits are than expected, and of how much more may arrive.
        self._times = self._underestimated(_SURELY)
        self._target = self._learned()
        self._short = self._shortage()
        band = drs.caution.given_for
        if not self._short:
            self._times = self._underestimated(0.0)
            self._target = self._learned()
            band = drs.caution.kept_for
        self._safe = now.topology.scaled(1 + band(now.uncertainty))
        self._wanted = aim(self._safe, replace(drs.goal, target=self._target), now.needs)

    def decision(self) -> Decision:
        """Return what to do."""
        if self._short:
            return self._more(self._short)
        if self._now.behind:
            waiting = ", ".join(f"{n:.0f} at {name}" for name, n in self._now.behind.items())
            return self._hold(f"catching up, {waiting} too many are waiting: nothing is taken")
        if self._goal.target is not None and self._fewer() and self._below_t_min():
            return self._less()
        return self._moved()

    # -- too slow ---------------------------------------------------------------------------

    def _shortage(self) -> str:
        """Return what is missing; nothing where all is well."""
        target, loads = self._goal.target, self._now.topology.loads
        full = [name for name, k in self._current.items() if k < loads[name].min_processors]
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
            return f"{self._statistic} of {expected_s:.3g} s is expected, {self._goal_text()}"
        return ""

    def _more(self, short: str) -> Decision:
        wanted, most = self._wanted.allocation, self._goal.most
        after = {name: max(k, wanted[name]) for name, k in self._current.items()}
        if (most is not None and sum(after.values()) > most) or self._goal.nodes is not None:
            after = wanted
        if after == self._current:
            return self._hold(f"{short}, but {self._wanted.note or 'no plan is better'}")
        undone = self._undone(after)
        if self._no_better(after, undone):
            best = self._wanted.note or "there are no more processors"
            return self._hold(
                f"{short}, but {best}: they are shared out as well as can be told"
            )
        urgent = self._drs.prompt and not (undone and self._on_time())
        if not urgent and (soon := self._drs.caution.too_soon(self._knowledge)):
            return self._hold(f"{short}, but {soon}")
        if undone and self._on_time():
            return self._hold(
                f"{short}, but {', '.join(undone)} gave processors up at the same load and the "
                f"target is kept: it stays"
            )
        return self._change(after, f"{short}: {allocation_text(after)}{self._noted()}")

    def _on_time(self) -> bool:
        target = self._goal.target
        return (
            self._carried(self._current) > 1
            and target is not None
            and self._measured_s <= target.seconds
        )

    def _carried(self, allocation: Mapping[str, int]) -> float:
        """Return how many times the load the slowest operator could carry."""
        offered = self._now.offered
        return min(k / max(offered[name], _LEAST_ERLANGS) for name, k in allocation.items())

    def _no_better(self, after: Mapping[str, int], undone: list[str]) -> bool:
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
        plenty = (
            f"{sum(self._wanted.allocation.values())} of {sum(self._current.values())} "
            f"processors would do"
        )
        if wanted is None:
            return self._hold(f"{plenty}, if the next observations say so too")
        low_s = self._drs.low_s
        if low_s is not None and not self._measured_s < low_s:
            return self._hold(
                f"{plenty}, but {self._measured_s:.3g} s is not below {low_s:g} s"
            )
        after = self._shrunk(wanted)
        for name in self._undone(after):
            after[name] = max(after[name], self._current[name])
        if sum(after.values()) >= sum(self._current.values()):
            return self._hold(f"{plenty}, but what was added at this load stays for a while")
        if soon := self._drs.caution.too_soon(self._knowledge):
            return self._hold(f"{plenty}, but {soon}")
        return self._change(after, f"{plenty}: {allocation_text(after)}{self._noted()}")

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
        seconds = self._seconds(self._expected)
        if self._goal.target is None:
            return f"{self._statistic} of {seconds:.3g} s is expected, the best of these"
        within = "within" if seconds <= self._goal.target.seconds else "as near as can be to"
        return f"{self._statistic} of {seconds:.3g} s is expected, {within} {self._goal.target}"

    # -- what all of them share -------------------------------------------------------------

    def _predicted(self, topology: Topology, allocation: Mapping[str, int]) -> _Figures | None:
        """Return what *allocation* would do; None where it does not keep up."""
        try:
            return _figures(topology, allocation, self._goal.model, self._statistic)
        except (UnstableStation, EndlessLoop):
            return None

    def _seconds(self, figures: "_Figures | None") -> float:
        return inf if figures is None else figures.seconds

    def _without_waiting_s(self) -> float:
        """Return what the statistic is when nothing waits."""
        plenty = {
            name: load.min_processors + ceil(10 * sqrt(load.erlangs)) + 10
            for name, load in self._now.topology.loads.items()
        }
        return self._seconds(self._predicted(self._now.topology, plenty))

    def _learned(self) -> Target | None:
        """Return the target that the model must meet, so that the measured one does."""
        target = self._goal.target
        if target is None or self._drs.trigger == "measured":
            return target
        # Closer than that to no wait at all, processors cost more than they could ever gain.
        wait_s = (target.seconds - self._floor_s) / self._times
        return replace(target, seconds=self._floor_s + max(wait_s, _LEAST_PART * self._floor_s))

    def _underestimated(self, surely: float) -> float:
        """Return how many times as long as expected waits have been, at least once.

        Not what was measured counts, but so many standard errors less.
        """
        target = self._goal.target
        outcomes = [
            (expected.seconds, after)
            for expected, after in self._knowledge.outcomes()[-_OUTCOMES:]
            if expected.statistic == self._statistic and _as_planned(expected, after)
        ]
        if target is None or target.seconds <= self._floor_s or not outcomes:
            return 1.0
        least_s = _LEAST_WAIT * (target.seconds - self._floor_s)
        expected_s = fmean(seconds for seconds, _ in outcomes)
        measured = _at_least_s([after for _, after in outcomes], self._statistic, surely)
        times = (measured - self._floor_s) / max(expected_s - self._floor_s, least_s)
        return min(_MOST_TIMES, max(1.0, times))

    def _goal_text(self) -> str:
        more = self._times > 1
        learned = f", waits being {self._times:.2g} times as long as the model says" * more
        return f"above {self._target}{learned}"

    def _noted(self) -> str:
        return f" ({self._wanted.note})" if self._wanted.note else ""

    def _undone(self, after: Mapping[str, int]) -> list[str]:
        return self._drs.caution.undone(
            self._knowledge, after, self._now.offered, self._now.noise, str(self._goal)
        )

    def _change(self, after: Mapping[str, int], reason: str) -> Decision:
        if quiet := self._drs.caution.quiet_now(self._knowledge):
            return self._hold(f"{reason}, but the hours {quiet} are quiet")
        return self._decided(after, reason)

    def _hold(self, reason: str) -> Decision:
        return self._decided(self._current, reason)

    def _decided(self, after: Mapping[str, int], reason: str) -> Decision:
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
            noise=self._now.noise,
        )

    def _expectation(self, figures: _Figures) -> Expected:
        return Expected(
            statistic=self._statistic,
            seconds=figures.seconds,
            arrivals_per_s=self._now.topology.arrivals_per_s,
            sojourns_s=figures.sojourns_s,
        )


def _as_planned(expected: Expected, after: Observation) -> bool:
    """Tell whether the load was what the expectation was for."""
    chance = _CHANCE / sqrt(max(1.0, after.arrivals_per_s * after.lasted_s))
    return abs(after.arrivals_per_s / expected.arrivals_per_s - 1) <= max(0.1, chance)


def _at_least_s(outcomes: Sequence[Observation], statistic: str, surely: float) -> float:
    """Return the statistic of many roots, less so many standard errors; 0 of too few roots.

    Latencies of roots that follow each other are alike, so they tell less than as many that
    do not: errors are taken for twice as large.
    """
    completions = sum((o.completions for o in outcomes), Sketch.empty())
    sums = sum((o.sums for o in outcomes), Sketch.empty())
    roots = completions.number
    if roots < _LEAST_ROOTS:
        return 0.0
    if statistic == "mean":
        return sums.mean_s - 2 * surely * sums.std_s / sqrt(roots)
    ratio = PERCENTILES[statistic]
    return completions.percentile_s(
        max(0.0, ratio - 2 * surely * sqrt(ratio * (1 - ratio) / roots))
    )


def _held(knowledge: Knowledge, reason: str) -> Decision:
    same = dict(knowledge.allocation)
    return Decision(at_s=knowledge.at_s, before=same, after=same, reason=reason)
