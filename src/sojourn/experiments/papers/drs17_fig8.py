"""DRS-17, Fig. 8: re-balancing, with T_ra = 14 minutes."""

from sojourn.experiments.papers.drs15_fig9 import CHOSEN, PAUSES, STARTS
from sojourn.experiments.rebalancing import Rebalancing
from sojourn.experiments.record import About

EXPERIMENT = Rebalancing(
    about=About(
        source="DRS-17, Fig. 8",
        claim=(
            "With T_ra = 14 min, sub-optimal starts go to the optimum after 14 minutes, the "
            "earliest possible, and only once; the optimal start stays; means fall clearly "
            "and are alike afterwards, and the change costs little, in its minute only."
        ),
        chosen=CHOSEN,
    ),
    starts=STARTS,
    first=14,
    t_ra_minutes=14.0,
    pauses=PAUSES,
)
