"""Loads an application by its address: `package.module:app`, or the path of a topology file.

Functions are not pickled: a host imports the module and looks up each function by the name of
its operator, so models and connections are created in the process that uses them. A topology
file has no functions: its operators only wait.
"""

import os
import re
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType

from sojourn.app.application import App
from sojourn.app.operator import Function, PythonOperator
from sojourn.errors import BadApplication, SojournError
from sojourn.text import shown

_ADDRESS = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)")
_FILES = (".yaml", ".yml", ".json")


def is_address(text: str) -> bool:
    """Return whether *text* is the address of an application, not of a file."""
    return topology_file(text) is None and _ADDRESS.fullmatch(text) is not None


def topology_file(address: str) -> Path | None:
    """Return the path of the topology file at *address*; None for a Python application.

    >>> topology_file("examples/vld.yaml").name, topology_file("shop.orders:app")
    ('vld.yaml', None)
    """
    return Path(address) if address.lower().endswith(_FILES) else None


def load(address: str) -> App:
    """Import and check the application at `package.module:app`.

    For the path of a topology file, return a stand-in. Raise a `BadInput` if there is no
    application, or hosts could not load it.
    """
    if (file := topology_file(address)) is not None:
        # they import numpy and yaml, which a host of an application in Python does not need
        from sojourn.app.waiting_app import stand_in  # noqa: PLC0415
        from sojourn.topology.file import read_topology  # noqa: PLC0415

        return stand_in(read_topology(file))
    found = _ADDRESS.fullmatch(address)
    if found is None:
        way_out = "write package.module:app, or the path of a topology file"
        raise BadApplication("application", f"{shown(address)} is not an address", way_out)
    module, name = found.groups()
    imported = _imported(address, module)
    app = getattr(imported, name, None)
    if not isinstance(app, App):
        problem = f"{name} is {shown(app)}" if app is not None else f"the module has no {name}"
        there = [each for each, found in vars(imported).items() if isinstance(found, App)]
        use = " or ".join(f"{module}:{each}" for each in there)
        way_out = f"use {use}" if there else f"write {name} = sj.App(…) in the module"
        raise BadApplication(address, problem, way_out)
    app.check_graph()
    check_loadable(app)
    return app


def import_path() -> str:
    """Return a `PYTHONPATH` that lets another process import the same modules as this one."""
    return os.pathsep.join(str(Path.cwd() / path) for path in sys.path)


def check_loadable(app: App) -> None:
    """Raise `BadApplication` if a host could not import the function of an operator."""
    for name, operator in app.operators.items():
        if isinstance(operator, PythonOperator):
            _check_found(f"operators.{name}", operator.function)
            if operator.set_up is not None:
                _check_found(f"operators.{name}.set_up", operator.set_up)


def _imported(address: str, module: str) -> ModuleType:
    try:
        return import_module(module)
    except SojournError:
        raise
    except Exception as error:
        raise BadApplication(
            address,
            f"importing {module} failed: {type(error).__name__}: {error}",
            "correct it, or start in a folder from which Python can import it",
        ) from error


def _check_found(place: str, function: Function) -> None:
    while isinstance(function, partial):
        function = function.func
    module = getattr(function, "__module__", None)
    if module == "__main__":
        raise BadApplication(
            place,
            "the function is in __main__, which a host cannot import",
            "put the application into a module, and name it package.module:app",
        )
    if "<locals>" in getattr(function, "__qualname__", ""):
        raise BadApplication(
            place,
            f"the function is defined inside another one, {function.__qualname__}",
            f"define it at the top level of {module}, and use set_up= for what it needs",
        )
