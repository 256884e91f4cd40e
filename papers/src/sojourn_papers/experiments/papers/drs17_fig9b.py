"""DRS-17, Fig. 9(b): a frame rate that changes for three minutes."""

from sojourn_papers.experiments.changing_load import Changing
from sojourn_papers.experiments.papers.drs17_fig9a import BURSTS, CHOSEN, PAUSES
from sojourn_papers.experiments.record import About
from sojourn_papers.experiments.timeline import Schedule

EXPERIMENT = Changing(
    about=About(
        source="DRS-17, Fig. 9(b)",
        claim=(
            "With 12 instead of 6 frames/s from minute 6 to minute 9, nothing is re-allocated "
            "with a window of w = 6 minutes. With w = 3 processors are added and removed "
            "again."
        ),
        chosen=f"As for Fig. 9(a). {CHOSEN}",
    ),
    application=BURSTS,
    schedule=Schedule(minutes=25, changes=((0, 6), (6, 12), (9, 6)), pauses=PAUSES),
    start=(3, 5, 1),
    target_s=1.0,
    low_s=0.45,
    expected={6: (), 3: ("up", "down")},
)
