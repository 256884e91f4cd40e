"""DRS-17, Fig. 8: re-balancing, with T_ra = 14 minutes."""

from dataclasses import replace

from sojourn_papers.experiments.papers.drs15_fig9 import CHOSEN, SCHEDULE, STARTS
from sojourn_papers.experiments.rebalancing import Rebalancing
from sojourn_papers.experiments.record import About

EXPERIMENT = Rebalancing(
    about=About(
        source="DRS-17, Fig. 8",
        claim=(
            "With T_ra = 14 min, sub-optimal starts change to the optimum once, after 14 "
            "minutes, which is the earliest possible time, and the optimal start does not "
            "change. Means fall clearly and are alike afterwards. The change costs little, "
            "and only in its minute."
        ),
        chosen=CHOSEN,
    ),
    starts=STARTS,
    schedule=replace(SCHEDULE, first=14),
    t_ra_minutes=14.0,
)
