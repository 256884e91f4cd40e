"""Schedules of kills and rescales, drawn from a seed.

>>> [f"{kill.target} after {kill.at_s:.1f} s" for kill in drawn(3, kills=2, within_s=10)]
['worker after 6.1 s', 'daemon after 9.1 s']
"""

from dataclasses import dataclass
from random import Random

TARGETS = ("processor", "template", "host", "worker", "daemon", "jvm", "driver", "broker")
"""Processes that can be killed on one machine: of a host, of Spark, the driver, Kafka."""
OF_NODES = ("agent", "executor", "processor", "worker")
"""Processes on the nodes of a cluster."""
ON_NODES = ("node", "host", *OF_NODES, "driver", "broker")
"""What can be killed on a cluster; a node stands for all processes on it."""
STARTED_AGAIN = ("jvm", "driver", "everything")
"""After these kills the trial must restart the application; it recovers from others itself."""
REPEATING = ("template", "host", "worker", "daemon", "jvm", "driver", "node", "executor")
"""After these kills, queries replay the uncommitted batch."""
LOGS = ("part/cuts", "offsets", "commits")
"""The folders of a checkpoint that get a file at the end of a batch, in this order."""

# By then the next file has been written; after a commit, the next batch has started.
_LATEST_S = {"part/cuts": 0.05, "offsets": 0.05, "commits": 0.5}


@dataclass(frozen=True)
class Kill:
    """A kill of a *target*, *at_s* after the first record."""

    at_s: float
    target: str
    pick: float
    """Which of several such processes, from 0 to 1."""


@dataclass(frozen=True)
class Rescale:
    """A change of the processors of operators, *at_s* after the first record."""

    at_s: float
    allocation: dict


@dataclass(frozen=True)
class Moment:
    """A kill of a *target* at the end of a batch, triggered by a new file of a checkpoint."""

    log: str
    """The folder of the file."""
    batches: int
    """The number of files to skip before."""
    after_s: float
    """Delay after the file has appeared."""
    target: str


def drawn(seed, *, kills, within_s, targets=TARGETS):
    """Return kills in the order of time; no target is repeated before all have occurred."""
    random = Random(seed)
    order = []
    while len(order) < kills:
        order += random.sample(targets, len(targets))
    times = sorted(random.uniform(0.0, within_s) for _ in range(kills))
    return [
        Kill(at_s, target, random.random()) for at_s, target in zip(times, order, strict=False)
    ]


def rescales(seed, allocation, *, number, within_s):
    """Return changes of an *allocation* in the order of time.

    Each changes half of the operators, to between one and twice their processors.

    >>> [found] = rescales(3, {"split": 4, "count": 2}, number=1, within_s=10)
    >>> found.allocation
    {'count': 3}
    """
    random = Random(seed)
    times = sorted(random.uniform(0.0, within_s) for _ in range(number))
    return [Rescale(at_s, _changed(random, allocation)) for at_s in times]


def _changed(random, allocation):
    names = random.sample(sorted(allocation), max(1, len(allocation) // 2))
    return {name: random.randint(1, 2 * allocation[name]) for name in names}


def moments(seed, number):
    """Return moments at the ends of batches; no folder is repeated before all have occurred.

    Half of the kills are of all processes together; a kill of the driver alone lets Java
    continue for a while.
    """
    random = Random(seed)
    order = []
    while len(order) < number:
        order += random.sample(LOGS, len(LOGS))
    return [
        Moment(
            log=log,
            batches=random.randint(0, 2),
            after_s=random.uniform(0.0, _LATEST_S[log]) if random.random() < 0.5 else 0.0,
            target=random.choice(("everything", "everything", "driver", "jvm")),
        )
        for log in order[:number]
    ]
