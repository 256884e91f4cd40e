"""The command line. Exit status: 0 success, 2 bad input, 3 not possible."""

import sys
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from traceback import format_exc
from typing import Annotated

import typer
from typer import Option
from typer.core import TyperCommand, TyperGroup

from sojourn.cli.broker import broker
from sojourn.cli.calibrate import calibrate
from sojourn.cli.compare import compare
from sojourn.cli.dead_letters import dead_letters, retry
from sojourn.cli.feed import feed
from sojourn.cli.history import history
from sojourn.cli.logs import logs
from sojourn.cli.objective import objective
from sojourn.cli.options.group import expanded
from sojourn.cli.plan import explain, plan, predict
from sojourn.cli.policies import policies
from sojourn.cli.rehearse import rehearse
from sojourn.cli.run import run
from sojourn.cli.simulate import simulate
from sojourn.cli.state import state
from sojourn.cli.steer import pause, resume, scale, set_goal, stop
from sojourn.cli.top import ps, top
from sojourn.cli.topology import topology
from sojourn.errors import BadInput, SojournError
from sojourn.text import escaped_lines

BAD_INPUT, CANNOT_BE_DONE = 2, 3


class _Group(TyperGroup):
    """A group of commands that turns a `SojournError` into one line and an exit status."""

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override]
        try:
            return super().invoke(ctx)
        except SojournError as error:
            typer.echo(escaped_lines(f"sojourn: {error}"), err=True)
            raise typer.Exit(
                BAD_INPUT if isinstance(error, BadInput) else CANNOT_BE_DONE
            ) from error


class _Command(TyperCommand):
    """A command whose usage error names --app if an argument is unexpected."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        ctx.allow_extra_args = True  # click would reject them without a hint
        extra = super().parse_args(ctx, args)
        if extra and not ctx.resilient_parsing:
            named = any(parameter.name == "app" for parameter in self.params)
            way_out = "; --app NAME chooses the application" if named else ""
            ctx.fail(f"unexpected argument {' '.join(extra)}{way_out}")
        return extra


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help=(
        "Keeps streaming applications inside their latency target, on few processors.\n\n"
        "FILE is a topology in YAML or JSON, or - for standard input. APP is an application: "
        "package.module:app. The --help of each command has an example. Exit status: "
        "0 success, 2 bad input, 3 not possible (the message says what would be)."
    ),
)


def _print_version(asked: bool) -> None:  # noqa: FBT001 - typer calls it with the flag
    if asked:
        from importlib.metadata import version  # noqa: PLC0415 - slow to import

        typer.echo(version("sojourn"))
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool,
        Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    pass


_Panels = Mapping[str, tuple[Callable[..., None], ...]]

_PANELS: _Panels = {
    "Plan": (plan, predict, explain, topology, calibrate),
    "Try out": (simulate, rehearse, compare, objective, policies),
    "Run and watch": (run, feed, top, ps, logs, state, history),
    "Control a running application": (scale, pause, resume, set_goal, stop),
    "Kafka": (dead_letters, retry, broker),
}


def _add(panels: _Panels) -> None:
    for panel, commands in panels.items():
        for command in commands:
            name = "set" if command is set_goal else None  # set is a built-in of Python
            app.command(name, cls=_Command, rich_help_panel=panel)(expanded(command))


_add(_PANELS)
for _extension in entry_points(group="sojourn.commands"):
    try:
        _add(_extension.load())
    except Exception as error:  # noqa: BLE001 - the other commands must keep working
        typer.echo(
            f"sojourn: cannot load the commands of {_extension.value}: {error}", err=True
        )


def main() -> None:
    """Run the command line; print the traceback of an unexpected error, escaped."""
    try:
        app(prog_name="sojourn")
    except Exception:  # noqa: BLE001 - its text may contain a record, so escape it
        typer.echo(escaped_lines(format_exc().rstrip()), err=True)
        sys.exit(1)
