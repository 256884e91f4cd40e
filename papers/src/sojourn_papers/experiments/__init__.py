"""The tables and figures of the DRS papers as experiments, one file each in `papers`."""

from importlib import import_module
from re import findall
from typing import cast

from sojourn import registry
from sojourn.errors import BadInput
from sojourn.text import shown
from sojourn_papers.experiments import papers
from sojourn_papers.experiments.record import Experiment

__all__ = ["Experiment", "experiment", "names"]


def names() -> tuple[str, ...]:
    """Return the names of all experiments, in the order of the papers.

    >>> names()[:3]
    ('drs15-fig6', 'drs15-fig7', 'drs15-fig8')
    """
    found = (name.replace("_", "-") for name in registry.names(papers.__name__))
    return tuple(sorted(found, key=_by_number))


def experiment(name: str) -> Experiment:
    """Return the experiment called *name*. Raise `BadInput` if there is none."""
    if name not in names():
        raise BadInput(f"unknown experiment {shown(name)}; write one of {', '.join(names())}")
    module = import_module(f"{papers.__name__}.{name.replace('-', '_')}")
    return cast("Experiment", module.EXPERIMENT)


def _by_number(name: str) -> list[tuple[str, int]]:
    """Return a sort key: Fig. 10 after Fig. 9, and tables after figures."""
    return [(text, int(digits or 0)) for text, digits in findall(r"([^0-9]+)([0-9]*)", name)]
