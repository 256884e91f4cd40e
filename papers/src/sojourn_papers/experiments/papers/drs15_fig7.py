"""DRS-15, Fig. 7: estimated against measured."""

from sojourn_papers.experiments.configurations import Estimates
from sojourn_papers.experiments.papers.drs15_fig6 import CHOSEN, FPD_SIX, VLD_SIX
from sojourn_papers.experiments.record import About

EXPERIMENT = Estimates(
    about=About(
        source="DRS-15, Fig. 7",
        claim=(
            "Measured means rise strictly with the model's estimates. For VLD the estimates "
            "are accurate and slightly low, although arrivals are not Poisson; for FPD they "
            "are less accurate, because the model does not include the network."
        ),
        chosen=f"As for Fig. 6. {CHOSEN}",
        caveat="On the simulator, FPD's network is a fixed time per hop.",
    ),
    sixes=(VLD_SIX, FPD_SIX),
    strict=True,
)
