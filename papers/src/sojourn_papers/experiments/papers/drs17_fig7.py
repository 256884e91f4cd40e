"""DRS-17, Fig. 7: the experiment of DRS-15, Fig. 7, of which less is claimed."""

from dataclasses import replace

from sojourn_papers.experiments.papers import drs15_fig7 as first

EXPERIMENT = replace(
    first.EXPERIMENT,
    about=replace(
        first.EXPERIMENT.about,
        source="DRS-17, Fig. 7",
        claim=(
            "Estimates and measured means are positively correlated and agree on the best "
            "allocation. For VLD the estimates are accurate and slightly low; for FPD they are "
            "less accurate."
        ),
    ),
    strict=False,
)
