"""The FILE or APP argument of commands, `--rate`, and `--app`."""

from collections.abc import Callable, Sequence
from math import inf
from typing import Annotated, Any

from typer import Argument, Option

from sojourn.cli.options.completion import applications, applications_that_ran, topologies
from sojourn.cli.options.group import Group
from sojourn.errors import BadInput
from sojourn.service.state_folder import known_applications
from sojourn.text import shown

AddressArgument = Annotated[
    str,
    Argument(
        metavar="FILE|APP",
        help="A topology in YAML or JSON, - for standard input; or an application: "
        "package.module:app.",
        autocompletion=topologies,
    ),
]


def _read_rates(
    *,
    rate: Annotated[
        list[str] | None,
        Option(
            metavar="SOURCE=PER_S",
            help="Records per second of a source: payments=40; may be repeated. Required for "
            "each source of an application; overrides the rates in a file.",
        ),
    ] = None,
) -> dict[str, float]:
    return read_rate_options(rate)


RateOptions = Annotated[dict[str, float], Group(_read_rates)]


def read_rate_options(texts: Sequence[str] | None) -> dict[str, float]:
    """Return the rate of each source, parsed from `payments=40`.

    >>> read_rate_options(["payments=40", "refunds=0.5"])
    {'payments': 40.0, 'refunds': 0.5}
    """
    rates: dict[str, float] = {}
    for text in texts or ():
        name, _, number = (part.strip() for part in text.partition("="))
        try:
            per_s = float(number)
        except ValueError:
            per_s = -1.0
        if not name or not 0 <= per_s < inf:
            raise BadInput(f"--rate {shown(text)} is not SOURCE=PER_S; write payments=40")
        if name in rates:
            raise BadInput(f"--rate {name} is given twice; write it once")
        rates[name] = per_s
    return rates


def _app(meaning: str, names: Callable[[str], list[str]]) -> Any:  # noqa: ANN401 - what typer returns
    return Option("--app", metavar="NAME", help=meaning, autocompletion=names)


AppOption = Annotated[
    str | None, _app("Application name; needed only if several run.", applications)
]
AnyAppOption = Annotated[
    str | None,
    _app(
        "Application name, running or not (default: the one that runs, or ran last).",
        applications_that_ran,
    ),
]


def app_hint(text: str) -> str:
    """Return a hint to write --app, if *text* is the name of an application; otherwise ""."""
    if text not in known_applications():
        return ""
    return f"; {text} is an application: write --app {text}"
