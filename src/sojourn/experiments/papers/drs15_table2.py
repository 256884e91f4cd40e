"""DRS-15, Table II: the running overhead of DRS."""

from dataclasses import replace

from sojourn.experiments.application import VLD
from sojourn.experiments.overhead import Overhead
from sojourn.experiments.record import About

EXPERIMENT = Overhead(
    about=About(
        source="DRS-15, Table II",
        claim=(
            "Scheduling takes about a millisecond at most and grows linearly with K_max; "
            "measuring does not depend on K_max, but on the number of tasks, which is fixed."
        ),
        chosen=(
            "VLD as for Fig. 6 at half its rate, so that 12 processors suffice. Medians of "
            "401 calls, instead of the mean of 100,000. Linear growth is judged by "
            "differences: from 96 to 192 about twice that from 48 to 96. Measuring is one "
            "minute's reports of 24 tasks, which the papers' operators are cut into once and "
            "for all."
        ),
        caveat=(
            "K_max is no input of measuring, so with fixed tasks nothing else could come "
            "out. Here there are no tasks: each processor reports, and so measuring does grow "
            "with the processors in use (last column), unlike in the papers."
        ),
    ),
    application=replace(VLD, topology=VLD.topology.scaled(0.5), frame_rates=None),
    paper_ms={12: 0.083, 24: 0.158, 48: 0.323, 96: 0.665, 192: 1.250},
    tasks=(10, 12, 2),
)
