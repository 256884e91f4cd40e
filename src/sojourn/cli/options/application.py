"""`--app`: a running application."""

from typing import Annotated

from typer import Option

from sojourn.cli.options.completion import applications

__all__ = ["AppOption"]

AppOption = Annotated[
    str | None,
    Option(
        "--app",
        metavar="NAME",
        help="Application name; needed only if several run.",
        autocompletion=applications,
    ),
]
