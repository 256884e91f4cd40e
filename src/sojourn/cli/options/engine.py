"""`--engine`, and a check that no option of another engine is given."""

from typing import Annotated

import typer
from typer import Option

from sojourn.app.address import import_from_here
from sojourn.cli.options.completion import completing
from sojourn.cli.options.group import Group, option_names
from sojourn.cli.options.kafka import SparkEngineOptions
from sojourn.errors import BadInput
from sojourn.service.engines import names

__all__ = ["EngineOption"]

# Options that only one engine has; with another engine they are an error.
_ONLY = {"spark": option_names(SparkEngineOptions), "simulator": ("rate",)}


def _read_engine(
    *,
    ctx: typer.Context,
    engine: Annotated[
        str,
        Option(
            metavar="NAME",
            help=f"Engine: {', '.join(names())} (in real time, without Java and Kafka), or "
            "your own: package.module:name.",
            autocompletion=completing(names),
        ),
    ] = "spark",
) -> str:
    """Return the name of the engine. Raise `BadInput` if an option is for another engine."""
    import_from_here(engine)
    for owner, options in _ONLY.items():
        for name in options:
            source = ctx.get_parameter_source(name)
            if source is not None and source.name == "COMMANDLINE" and owner != engine:
                raise BadInput(
                    f"--{name.replace('_', '-')} is for the engine {owner}, not {engine}; "
                    "leave it out"
                )
    return engine


EngineOption = Annotated[str, Group(_read_engine)]
