"""When what is killed, all from a seed.

>>> [f"{kill.target} after {kill.at_s:.1f} s" for kill in drawn(3, kills=2, within_s=10)]
['worker after 6.1 s', 'daemon after 9.1 s']
"""

from dataclasses import dataclass
from random import Random

TARGETS = ("processor", "template", "host", "worker", "daemon", "jvm", "driver", "broker")
"""What can be killed: of a host, of Spark, the process that drives both, and Kafka."""
OF_NODES = ("agent", "executor", "processor", "worker")
"""What runs on the nodes of a cluster."""
ON_NODES = ("node", "host", *OF_NODES, "driver", "broker")
"""What can be killed of an application on several nodes; a node is all that runs on it."""
STARTED_AGAIN = ("jvm", "driver", "everything")
"""After these the application has to be started again; of the others it takes care itself."""
REPEATING = ("template", "host", "worker", "daemon", "jvm", "driver", "node", "executor")
"""After these a batch is repeated: what was done since the last commit is done again."""
LOGS = ("part/cuts", "offsets", "commits")
"""The folders of a checkpoint to which a file is added when a batch ends, in that order."""

# By then the next file is written; after a commit, the next batch has begun.
_LATEST_S = {"part/cuts": 0.05, "offsets": 0.05, "commits": 0.5}


@dataclass(frozen=True)
class Kill:
    """*target* is killed *at_s* after the first record; *pick* (0 to 1) is which of several."""

    at_s: float
    target: str
    pick: float


@dataclass(frozen=True)
class Rescale:
    """Operators get so many processors *at_s* after the first record."""

    at_s: float
    allocation: dict


@dataclass(frozen=True)
class Moment:
    """When a file of the end of a batch appears, and a little after.

    The file is in the folder *log* of a checkpoint; *batches* appear before it. *target* is
    killed then.
    """

    log: str
    batches: int
    after_s: float
    target: str


def drawn(seed, *, kills, within_s, targets=TARGETS):
    """Return so many kills in the order of time, each target once before one comes again."""
    random = Random(seed)
    order = []
    while len(order) < kills:
        order += random.sample(targets, len(targets))
    times = sorted(random.uniform(0.0, within_s) for _ in range(kills))
    return [
        Kill(at_s, target, random.random()) for at_s, target in zip(times, order, strict=False)
    ]


def rescales(seed, allocation, *, number, within_s):
    """Return so many changes of an *allocation* in the order of time.

    Each changes about half of the operators, to between one and twice the processors.

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
    """Return so many moments at the ends of batches, each folder in turn.

    Mostly everything is killed at once; the driver alone leaves Java a while.
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
