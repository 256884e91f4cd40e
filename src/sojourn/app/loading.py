"""Where a host finds an application: `package.module:app`, imported; or a topology file.

Functions do not travel. A host imports the module as its author wrote it, and finds each
function by the name of its operator; so nothing has to be pickled, and models or connections
are made where they are used. A topology file has no functions: a stand-in waits in their place.
"""

import re
from functools import partial
from importlib import import_module
from pathlib import Path

from sojourn.app.application import App
from sojourn.app.operator import Function, PythonOperator
from sojourn.errors import BadApplication, SojournError
from sojourn.topology.check import shown

__all__ = ["check_loadable", "is_address", "load"]

_ADDRESS = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)")
_FILES = (".yaml", ".yml", ".json")


def is_address(text: str) -> bool:
    """Tell whether *text* names an application, and not a file."""
    return not text.lower().endswith(_FILES) and _ADDRESS.fullmatch(text) is not None


def load(address: str) -> App:
    """Return the application at `package.module:app`, checked as a whole.

    Of the path of a topology file it is the stand-in. Raise a `BadInput` if it is not there,
    or hosts could not load it.
    """
    if address.lower().endswith(_FILES):
        return _stand_in(Path(address))
    found = _ADDRESS.fullmatch(address)
    if found is None:
        way_out = "write package.module:app, or the path of a topology file"
        raise BadApplication("application", f"{shown(address)} is no address", way_out)
    module, name = found.groups()
    app = getattr(_imported(address, module), name, None)
    if not isinstance(app, App):
        problem = f"{name} is {shown(app)}" if app is not None else f"there is no {name} in it"
        raise BadApplication(address, problem, f"write {name} = sj.App(…) in the module")
    app.check()
    check_loadable(app)
    return app


def check_loadable(app: App) -> None:
    """Raise a `BadApplication` that names an operator whose function no host could find."""
    for name, operator in app.operators.items():
        if isinstance(operator, PythonOperator):
            _check_found(f"operators.{name}", operator.function)
            if operator.set_up is not None:
                _check_found(f"operators.{name}.set_up", operator.set_up)


def _stand_in(path: Path) -> App:
    # numpy and yaml come with it, which a host of a written application does not need
    from sojourn.app.stand_in import stand_in  # noqa: PLC0415
    from sojourn.topology.file import read_topology  # noqa: PLC0415

    return stand_in(read_topology(path))


def _imported(address: str, module: str) -> object:
    try:
        return import_module(module)
    except SojournError:
        raise
    except Exception as error:
        raise BadApplication(
            address,
            f"importing {module} failed: {type(error).__name__}: {error}",
            "correct it, and start where `python -c 'import …'` finds it",
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
            f"the function is made inside another one, {function.__qualname__}",
            f"define it at the top of {module}, and use set_up= for what it needs",
        )
