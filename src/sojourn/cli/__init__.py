"""The command line. Exit status: 0 done, 2 bad input, 3 cannot be done."""

from typing import Annotated

import typer
from typer.core import TyperGroup

from sojourn.cli.broker import broker
from sojourn.cli.calibrate import calibrate
from sojourn.cli.compare import compare
from sojourn.cli.dead_letters import dead_letters
from sojourn.cli.explain import explain
from sojourn.cli.history import history
from sojourn.cli.logs import logs
from sojourn.cli.plan import plan
from sojourn.cli.predict import predict
from sojourn.cli.ps import ps
from sojourn.cli.rehearse import rehearse
from sojourn.cli.reproduce import reproduce
from sojourn.cli.retry import retry
from sojourn.cli.run import run
from sojourn.cli.simulate import simulate
from sojourn.cli.steer import pause, resume, scale, set_goal
from sojourn.cli.top import top
from sojourn.cli.topology import topology
from sojourn.errors import BadInput, SojournError

__all__ = ["app", "main"]

BAD_INPUT, CANNOT_BE_DONE = 2, 3


class _Group(TyperGroup):
    """Commands whose refusals are one line and an exit status, never a traceback."""

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override]
        """Run the command."""
        try:
            return super().invoke(ctx)
        except SojournError as error:
            typer.echo(f"sojourn: {error}", err=True)
            raise typer.Exit(
                BAD_INPUT if isinstance(error, BadInput) else CANNOT_BE_DONE
            ) from error


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help=(
        "Keeps streaming applications inside their latency target, on few processors.\n\n"
        "FILE is a topology in YAML or JSON, - for standard input; APP an application, "
        "package.module:app. Every command has an example in its --help. Exit status: 0 done, "
        "2 bad input, 3 cannot be done (the message says what the least is that could)."
    ),
)


def _print_version(asked: bool) -> None:  # noqa: FBT001 - typer calls it with the flag
    if asked:
        from importlib.metadata import version  # noqa: PLC0415 - slow, and rarely asked for

        typer.echo(version("sojourn"))
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print it."),
    ] = False,
) -> None:
    pass


_PLAN, _TRY, _RUN, _ORDER, _KAFKA = (
    "Plan", "Try out", "Run and watch", "Tell a running application", "Kafka",
)  # fmt: skip

app.command(rich_help_panel=_PLAN)(plan)
app.command(rich_help_panel=_PLAN)(predict)
app.command(rich_help_panel=_PLAN)(explain)
app.command(rich_help_panel=_PLAN)(topology)
app.command(rich_help_panel=_PLAN)(calibrate)
app.command(rich_help_panel=_TRY)(simulate)
app.command(rich_help_panel=_TRY)(rehearse)
app.command(rich_help_panel=_TRY)(compare)
app.command(rich_help_panel=_TRY)(reproduce)
app.command(rich_help_panel=_RUN)(run)
app.command(rich_help_panel=_RUN)(top)
app.command(rich_help_panel=_RUN)(ps)
app.command(rich_help_panel=_RUN)(logs)
app.command(rich_help_panel=_RUN)(history)
app.command(rich_help_panel=_ORDER)(scale)
app.command(rich_help_panel=_ORDER)(pause)
app.command(rich_help_panel=_ORDER)(resume)
app.command(name="set", rich_help_panel=_ORDER)(set_goal)
app.command(name="dead-letters", rich_help_panel=_KAFKA)(dead_letters)
app.command(rich_help_panel=_KAFKA)(retry)
app.command(rich_help_panel=_KAFKA)(broker)


def main() -> None:
    """Run the command line."""
    app(prog_name="sojourn")
