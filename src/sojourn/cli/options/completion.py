"""Shell completion of names that are known only at run time."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import typer

from sojourn.act.policy import names as policy_names
from sojourn.errors import SojournError
from sojourn.model.station import names as model_names
from sojourn.service.client import ask
from sojourn.service.entry import find, running
from sojourn.service.folders import state_folder

__all__ = [
    "applications",
    "histories",
    "models",
    "operators",
    "operators_to_scale",
    "operators_with_logs",
    "policies",
    "policy_list",
    "topologies",
]  # fmt: skip

_FILES = (".yaml", ".yml", ".json")


def applications(incomplete: str) -> list[str]:
    """Complete running applications."""
    with suppress(SojournError, OSError):
        return _beginning(incomplete, running())
    return []


def histories(incomplete: str) -> list[str]:
    """Complete applications that run, or have run here."""
    with suppress(SojournError, OSError):
        ran = (path.parent.name for path in sorted(state_folder("").glob("*/history")))
        return _beginning(incomplete, dict.fromkeys([*running(), *ran]))
    return []


def operators(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete operators of the running application."""
    with suppress(SojournError, OSError):
        folder, entry = find(ctx.params.get("app"))
        known = ask(folder, entry, {"ask": "status"}).get("operators", {})
        return _beginning(incomplete, known)
    return []


def operators_to_scale(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete operators that have no processors on the command line yet, as `match=`."""
    given = {text.partition("=")[0] for text in ctx.params.get("processors") or ()}
    return [f"{name}=" for name in operators(ctx, incomplete) if name not in given]


def operators_with_logs(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete operators that have a log."""
    with suppress(SojournError, OSError):
        state = ctx.params.get("state")
        folder = Path(find(ctx.params.get("app"))[1].logs) if state is None else state / "logs"
        return _beginning(incomplete, (path.stem for path in sorted(folder.glob("*.log"))))
    return []


def policies(incomplete: str) -> list[str]:
    """Complete policies."""
    return _beginning(incomplete, policy_names())


def policy_list(incomplete: str) -> list[str]:
    """Complete the last policy of a list: `drs,static`."""
    before, comma, last = incomplete.rpartition(",")
    there = before.split(",")
    return [
        f"{before}{comma}{name}" for name in policies(last) if not comma or name not in there
    ]


def models(incomplete: str) -> list[str]:
    """Complete station models."""
    return _beginning(incomplete, model_names())


def topologies(incomplete: str) -> list[str]:
    """Complete topology files and folders."""
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


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
