"""DRS-17, Table II: the experiment of DRS-15, Table II."""

from dataclasses import replace

from sojourn_papers.experiments.papers import drs15_table2 as first

EXPERIMENT = replace(
    first.EXPERIMENT, about=replace(first.EXPERIMENT.about, source="DRS-17, Table II")
)
