"""DRS-15, Table II: the running overhead of DRS."""

from dataclasses import replace

from sojourn_papers.experiments.application import VLD
from sojourn_papers.experiments.overhead import Overhead
from sojourn_papers.experiments.record import About

EXPERIMENT = Overhead(
    about=About(
        source="DRS-15, Table II",
        claim=(
            "Scheduling takes about a millisecond at most and grows linearly with K_max. "
            "Measuring does not depend on K_max, but on the number of tasks, which is fixed."
        ),
        chosen=(
            "VLD as for Fig. 6 at half its rate, so that 12 processors are enough. Times are "
            "medians of 401 calls, instead of the mean of 100,000. Growth is linear if the "
            "difference from 96 to 192 processors is about twice that from 48 to 96. "
            "Measuring processes the reports of 24 tasks for one minute; in the papers the "
            "number of tasks of an operator never changes."
        ),
        caveat=(
            "K_max is not an input of measuring, so with a fixed number of tasks the result "
            "is certain. Sojourn has no tasks: each processor reports, so unlike in the "
            "papers measuring grows with the number of processors (last column)."
        ),
    ),
    application=replace(VLD, topology=VLD.topology.scaled(0.5), frame_rates=None),
    paper_ms={12: 0.083, 24: 0.158, 48: 0.323, 96: 0.665, 192: 1.250},
    tasks=(10, 12, 2),
)
