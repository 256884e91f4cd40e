"""The schedule of kills at steps of a host, drawn from a seed.

>>> [(kill.point, kill.part) for kill in drawn(1, run=0)[:2]]
[('states: torn', 'count'), ('recovery: while the log is replayed', 'count')]
"""

from dataclasses import dataclass
from itertools import count
from random import Random

from sojourn_trial.kills.kill_steps import Order

PARTS = ("enter", "count")
KILLS = 6
"""The number of kills per run."""


@dataclass(frozen=True)
class Point:
    """A step at which processes can be killed."""

    step: str
    """A step of `kill_steps`."""
    many: int = 1
    """The kill is at one of the first *many* times that the step is reached."""
    whom: str = "host"
    """The victim: host, driver or everything."""
    parts: tuple = PARTS
    """The parts that reach the step."""

    @property
    def recovers(self):
        """Whether only a restarted host reaches the step: a host must be killed before."""
        return self.step.startswith("recovery")

    def __str__(self):
        return self.step if self.whom == "host" else f"{self.step}, {self.whom}"


_STATE = ("count",)
POINTS = {
    str(point): point
    for point in (
        Point("log: before an entry", 40),
        Point("log: torn entry", 40),
        Point("log: after an entry", 40),
        Point("answer: before results are handed over", 30),
        Point("answer: after results are handed over", 30),
        Point("log: before its file of a cut"),
        Point("log: after its file"),
        Point("cut: before it is written"),
        Point("states: torn", parts=_STATE),
        Point("states: before the sync", parts=_STATE),
        Point("states: synced, before the rename", parts=_STATE),
        Point("states: renamed, its folder is not synced", parts=_STATE),
        Point("manifest: torn"),
        Point("manifest: before the sync"),
        Point("manifest: synced, before the rename"),
        Point("manifest: renamed, its folder is not synced"),
        Point("commit: manifest written"),
        Point("commit: before the relay is told"),
        Point("commit: the relay is told"),
        Point("commit: manifest written", whom="driver"),
        Point("commit: manifest written", whom="everything"),
        Point("commit: the relay is told", whom="everything"),
        Point("cut: before old ones go"),
        Point("cut: old ones are gone"),
        Point("log: before it is shortened"),
        Point("log: while shortened"),
        Point("merge: before", parts=_STATE),
        Point("merge: inside the transaction", 2, parts=_STATE),
        Point("merge: in the store, before files are removed", parts=_STATE),
        Point("merge: after", parts=_STATE),
        Point("reminder: due", 8, parts=_STATE),
        Point("reminder: fired, not logged", 8, parts=_STATE),
        Point("reminder: fired and logged", 8, parts=_STATE),
        Point("reminder: its answer is logged", 8, parts=_STATE),
        Point("recovery: before"),
        Point("recovery: the cut is loaded"),
        Point("recovery: while the log is replayed", 20),
        Point("recovery: all is restored"),
    )
}


@dataclass(frozen=True)
class KillPoint:
    """A kill at a *point* in a *part*, and the *order* for it."""

    point: str
    part: str
    order: Order


def drawn(seed, *, run, points=None):
    """Return the kills of a run. Over all runs, no point is repeated before all have occurred.

    >>> deck = [kill.point for run in range(len(POINTS)) for kill in drawn(5, run=run)]
    >>> {deck.count(name) for name in POINTS} == {KILLS}
    True
    """
    random, names = Random(seed), points or list(POINTS)
    deck = []
    for _ in count():
        if len(deck) >= KILLS * (run + 1):
            break
        deck += random.sample(names, len(names))
    here = Random(f"{seed}/{run}")
    return [_drawn(here, name) for name in deck[KILLS * run : KILLS * (run + 1)]]


def _drawn(random, name):
    point = POINTS[name]
    order = Order(point.step, random.randint(1, point.many), point.whom)
    # the part with the states is drawn more often, because it can lose more
    part = random.choice([*point.parts, "count"])
    return KillPoint(name, part, order)


def rounds(kills):
    """Group consecutive kills that can take place together: of hosts, in different parts.

    >>> [len(together) for together in rounds(drawn(1, run=0))]
    [1, 1, 2, 1, 1]
    """
    found = []
    for kill in kills:
        together = found[-1] if found else []
        alone = kill.order.whom != "host" or any(k.order.whom != "host" for k in together)
        if not together or alone or kill.part in {k.part for k in together}:
            found.append([kill])
        else:
            together.append(kill)
    return found
