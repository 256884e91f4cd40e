"""Shell completion of names that are known only at run time."""

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import typer

from sojourn.act.policy import names as policy_names
from sojourn.cli.options import in_state
from sojourn.errors import SojournError
from sojourn.service.control import ask_status
from sojourn.service.folders import find, running
from sojourn.service.logs import log_files
from sojourn.service.state_folder import known_applications
from sojourn.service.status import Status

_FILES = (".yaml", ".yml", ".json")


def completing(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return a completion function for *names*; it completes nothing if *names* fails."""

    def complete(incomplete: str) -> list[str]:
        # a traceback in the middle of a command line would be worse than no completion
        with suppress(SojournError, OSError):
            return [name for name in names() if name.startswith(incomplete)]
        return []

    return complete


applications = completing(running)
applications_that_ran = completing(known_applications)
policies = completing(policy_names)


def operators(ctx: typer.Context, incomplete: str) -> list[str]:
    return completing(lambda: _status(ctx).operators)(incomplete)


def nodes(ctx: typer.Context, incomplete: str) -> list[str]:
    return completing(lambda: (node.name for node in _status(ctx).health.nodes))(incomplete)


def operators_to_scale(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the operators that are not on the command line yet, as `match=`."""
    given = {text.partition("=")[0] for text in ctx.params.get("processors") or ()}
    return [f"{name}=" for name in operators(ctx, incomplete) if name not in given]


def operators_with_logs(ctx: typer.Context, incomplete: str) -> list[str]:
    return completing(lambda: log_files(_in_state(ctx, "logs")))(incomplete)


def operators_with_state(ctx: typer.Context, incomplete: str) -> list[str]:
    def known() -> Iterable[str]:
        form = json.loads(_in_state(ctx, "application.json").read_text(encoding="utf-8"))
        return form.get("states", ())  # type: ignore[no-any-return]

    return completing(known)(incomplete)


def _status(ctx: typer.Context) -> Status:
    return ask_status(*find(ctx.params.get("app")))


def _in_state(ctx: typer.Context, name: str) -> Path:
    return in_state(name, ctx.params.get("app"), ctx.params.get("state"))


def policy_list(incomplete: str) -> list[str]:
    """Complete the last policy of a list such as `drs,static`."""
    before, comma, last = incomplete.rpartition(",")
    there = before.split(",")
    return [
        f"{before}{comma}{name}" for name in policies(last) if not comma or name not in there
    ]


def topologies(incomplete: str) -> list[str]:
    folder, _, begin = incomplete.rpartition("/")
    found = []
    with suppress(OSError):
        for path in sorted(Path(folder or ("/" if incomplete[:1] == "/" else ".")).iterdir()):
            shown = incomplete[: len(incomplete) - len(begin)] + path.name
            if path.name.startswith(begin) and (begin or not path.name.startswith(".")):
                if path.is_dir():
                    found.append(f"{shown}/")
                elif path.suffix.lower() in _FILES:
                    found.append(shown)
    return found
