"""`sojourn state`: the state that operators keep for each key; backup and export."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from sojourn.cli.options import JsonOption, StateOption, in_state
from sojourn.cli.options.address import AnyAppOption, app_hint
from sojourn.cli.options.completion import operators_with_state
from sojourn.errors import BadInput
from sojourn.registry import optional
from sojourn.report.json.listings import key_json, summary_json
from sojourn.report.json.output import print_json
from sojourn.report.parquet import states_to_parquet
from sojourn.report.terminal.listings import (
    print_key,
    print_summaries,
    print_summary,
)
from sojourn.report.terminal.progress import working
from sojourn.text import shown

if TYPE_CHECKING:  # the store is optional
    from sojourn.spark.driver.state.key_states import KeyStates


def state(
    operator: Annotated[
        str | None,
        Argument(help="Operator (default: all).", autocompletion=operators_with_state),
    ] = None,
    key: Annotated[
        str | None,
        Argument(help="Value of the key column; a JSON list of several: '[\"de\", 5]'."),
    ] = None,
    *,
    export: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Write all states to a backup; with OPERATOR, those of one to Parquet.",
        ),
    ] = None,
    import_: Annotated[
        Path | None,
        Option(
            "--import",
            metavar="FILE",
            help="Replace the states of a stopped application by those of a backup.",
        ),
    ] = None,
    state: StateOption = None,
    app: AnyAppOption = None,
    json: JsonOption = False,
) -> None:
    """Show the state that the functions of an application keep for each key.

    The application may be running or not. All states are as of the last batch that Spark has
    committed. Bytes are those of keys and states.

    Examples: sojourn state · sojourn state count the ·
    sojourn state count --export counts.parquet --app wordcount ·
    sojourn state --export wordcount.states
    """
    _check(operator, key, export, import_)
    if import_ is not None and app is None and state is None:
        raise BadInput("--import replaces states; name the application with --app")
    with optional("states need", "spark"):
        from sojourn.spark.driver.state.key_states import KeyStates  # noqa: PLC0415 - optional
    folder = in_state("application.json", app, state).parent
    states = KeyStates(folder)
    name = states.application
    if app not in (None, name):
        raise BadInput(f"{folder} is the state folder of {name}, not of {shown(app)}")
    if operator is not None and operator not in states.forms and (hint := app_hint(operator)):
        raise BadInput(f"{name} has no operator {operator}{hint}")
    if import_ is not None:
        _transfer(name, folder, import_, imports=True, json=json)
    elif operator is None and export is not None:
        _transfer(name, folder, export, imports=False, json=json)
    elif operator is None:
        _show_all(states, folder, json=json)
    elif key is not None:
        _show_key(states, operator, key, json=json)
    elif export is not None:
        _export(states, operator, export, json=json)
    else:
        _show_operator(states, operator, json=json)


def _check(
    operator: str | None, key: str | None, export: Path | None, import_: Path | None
) -> None:
    if export is not None and import_ is not None:
        raise BadInput("--export and --import exclude each other; leave out one of them")
    if export is not None and key is not None:
        raise BadInput("--export writes all states of an operator; leave out the key")
    if export is not None and operator is None and export.suffix == ".parquet":
        raise BadInput(
            f"--export {export} writes a backup of all operators, which is not Parquet; name "
            "an operator, or a file with another ending"
        )
    if import_ is not None and operator is not None:
        raise BadInput("--import replaces the states of all operators; leave out the operator")


def _transfer(name: str, folder: Path, path: Path, *, imports: bool, json: bool) -> None:
    """Replace all states in *folder* by those of a backup, or write a backup of them."""
    from sojourn.spark.driver.state.state_transfer import export_states, import_states  # noqa: PLC0415 - optional

    with working(f"{'reading' if imports else 'writing'} {path}"):
        done = import_states(folder, path) if imports else export_states(folder, path)
    states = f"{done.entries} states of {', '.join(done.operators)}"
    if json:
        found = {"operators": done.operators, "entries": done.entries}
        print_json({"name": name, "file": str(path), **found})
    elif imports:
        typer.echo(f"imported {states} from {path} into {name}")
    else:
        typer.echo(f"exported {states} to {path}")


def _show_all(states: "KeyStates", folder: Path, *, json: bool) -> None:
    with working(f"reading {folder}"):
        found = {name: states.summary(name, largest=0) for name in states.forms}
    if json:
        told = {name: summary_json(summary) for name, summary in found.items()}
        print_json({"name": states.application, "state": str(folder), "operators": told})
    elif not found:
        typer.echo(f"no operator of {states.application} keeps a state for each key (state=…)")
    else:
        print_summaries(found)


def _show_operator(states: "KeyStates", operator: str, *, json: bool) -> None:
    with working(f"reading the state of {operator}"):
        summary = states.summary(operator)
    if json:
        print_json({"operator": operator, **summary_json(summary)})
    else:
        print_summary(operator, summary)


def _show_key(states: "KeyStates", operator: str, key: str, *, json: bool) -> None:
    form, found = states.form(operator), states.of(operator, key)
    if json:
        print_json({"operator": operator, **key_json(form, found)})
    else:
        print_key(form, found)


def _export(states: "KeyStates", operator: str, path: Path, *, json: bool) -> None:
    with working(f"writing {path}"):
        number = states_to_parquet(path, states, operator)
    if json:
        print_json({"operator": operator, "file": str(path), "keys": number})
    else:
        typer.echo(f"exported {number} keys to {path}")
