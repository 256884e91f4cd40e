"""A run under a policy, minute by minute."""

from collections.abc import Mapping
from dataclasses import dataclass

from sojourn.act.policy.base import Policy
from sojourn.engine import Engine
from sojourn.experiments.application import Application
from sojourn.experiments.published_drs import EVERY_S
from sojourn.loop import ACTIVE, PASSIVE, Loop
from sojourn.plan import Plan

__all__ = ["Change", "Minute", "Watched", "watch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Minute:
    """What was measured until *minute*: E[T], the mean completion, and the load."""

    minute: float
    mean_s: float
    completion_s: float
    per_s: float
    allocation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A re-allocation at *minute*."""

    minute: float
    kind: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A run: its minutes, and what was changed."""

    minutes: tuple[Minute, ...]
    changes: tuple[Change, ...]

    def between(self, after: float, until: float) -> list[Minute]:
        """Return the minutes that ended after *after*, up to *until*."""
        return [minute for minute in self.minutes if after < minute.minute <= until]


def watch(  # noqa: PLR0913 - when what happens is told by name
    engine: Engine,
    application: Application,
    allocation: Mapping[str, int],
    policy: Policy,
    *,
    minutes: int,
    active_from: float = 0.0,
    minute_s: float = EVERY_S,
) -> Watched:
    """Return what happened in so many *minutes*; from minute *active_from* on DRS may act."""
    seen, changes = list[Minute](), list[Change]()
    with engine:
        engine.start(application.running, Plan.here(allocation))
        loop = Loop(engine, application.topology, policy, every_s=minute_s)
        for number in range(1, minutes + 1):
            loop.follow(policy, ACTIVE if number >= active_from else PASSIVE)
            episode = loop.turn()
            observation, decision = episode.observation, episode.decision
            seen.append(
                Minute(
                    minute=float(number),
                    mean_s=observation.mean_s,
                    completion_s=observation.completions.mean_s,
                    per_s=observation.arrivals_per_s,
                    allocation=str(decision.before),
                )
            )
            if episode.cost is not None and episode.cost.changed:
                changes.append(
                    Change(
                        minute=float(number),
                        kind=decision.kind,
                        before=str(decision.before),
                        after=str(decision.after),
                    )
                )
    return Watched(minutes=tuple(seen), changes=tuple(changes))
