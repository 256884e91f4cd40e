"""Claims and outcomes of experiments as JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sojourn_papers.experiments import experiment

if TYPE_CHECKING:
    from sojourn_papers.experiments.runner import Reproduced


def listing(names: Sequence[str]) -> dict[str, Any]:
    """Return the claims of the named experiments."""
    abouts = {name: experiment(name).about for name in names}
    return {
        "experiments": [
            {"name": name, "source": about.source, "claim": about.claim}
            for name, about in abouts.items()
        ]
    }


def verdicts(done: "Sequence[Reproduced]", seed: int, engine: str) -> dict[str, Any]:
    """Return the outcomes of those that are *done*."""
    return {
        "engine": engine,
        "seed": seed,
        "holds": all(one.outcome.holds for one in done),
        "experiments": [
            {
                "name": one.name,
                "source": one.about.source,
                "claim": one.about.claim,
                "caveat": one.about.caveat,
                "holds": one.outcome.holds,
                "verdicts": [asdict(verdict) for verdict in one.outcome.verdicts],
                "csv": str(one.csv),
                "picture": None if one.picture is None else str(one.picture),
                "wall_s": one.wall_s,
            }
            for one in done
        ],
    }
