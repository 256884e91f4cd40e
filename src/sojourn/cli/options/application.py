"""`--app`: the name of an application, the same in all commands."""

from typing import Annotated

from typer import Option

from sojourn.cli.options.completion import applications, applications_that_ran
from sojourn.service.state_folder import known_applications

__all__ = ["AnyAppOption", "AppOption", "app_hint"]

AppOption = Annotated[
    str | None,
    Option(
        "--app",
        metavar="NAME",
        help="Application name; needed only if several run.",
        autocompletion=applications,
    ),
]

AnyAppOption = Annotated[
    str | None,
    Option(
        "--app",
        metavar="NAME",
        help="Application name, running or not (default: the one that runs, or ran last).",
        autocompletion=applications_that_ran,
    ),
]


def app_hint(text: str) -> str:
    """Return a hint to write --app, if *text* is the name of an application; otherwise ""."""
    if text not in known_applications():
        return ""
    return f"; {text} is an application: write --app {text}"
