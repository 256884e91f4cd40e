"""DRS-15, Fig. 9: re-balancing, switched on after 13 minutes."""

from sojourn_papers.experiments.application import FPD, VLD
from sojourn_papers.experiments.bench import Pauses
from sojourn_papers.experiments.rebalancing import Rebalancing, StartAllocations
from sojourn_papers.experiments.record import About
from sojourn_papers.experiments.timeline import Schedule

CHOSEN = (
    "VLD and FPD are as for Fig. 6, and start with the allocations named in the paper. The "
    "scheduler averages over 6 minutes and moves processors for a gain of 5 % or more. "
    "Operators that change are paused for 1 s: the procedure of the paper takes a few "
    "seconds, but operators continue to work during most of it."
)
STARTS = (
    StartAllocations(application=VLD, best=(10, 11, 1), others=((8, 12, 2), (11, 9, 2))),
    StartAllocations(application=FPD, best=(6, 13, 3), others=((8, 12, 2), (7, 13, 2))),
)
SCHEDULE = Schedule(minutes=27, first=13, pauses=Pauses(adding_s=1.0, otherwise_s=1.0))

EXPERIMENT = Rebalancing(
    about=About(
        source="DRS-15, Fig. 9",
        claim=(
            "With re-balancing enabled from the 14th minute on, sub-optimal starts change to "
            "the optimum in that minute, and the optimal start does not change. Means fall "
            "clearly and are alike afterwards. The change costs little, and only in the 14th "
            "minute."
        ),
        chosen=CHOSEN,
    ),
    starts=STARTS,
    schedule=SCHEDULE,
)
