"""DRS-17, Fig. 6: the experiment of DRS-15, Fig. 6."""

from dataclasses import replace

from sojourn_papers.experiments.papers import drs15_fig6 as first

EXPERIMENT = replace(
    first.EXPERIMENT, about=replace(first.EXPERIMENT.about, source="DRS-17, Fig. 6")
)
