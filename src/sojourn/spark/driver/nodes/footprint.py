"""The memory of a process that imports an application, measured in such a process."""

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module

import psutil

from sojourn.app.loading import import_path, load
from sojourn.errors import EngineError

__all__ = ["footprint_bytes", "main"]

_PATIENCE_S = 60.0


def footprint_bytes(
    modules: Sequence[str], address: str = "", *, patience_s: float = _PATIENCE_S
) -> int:
    """Return the resident memory of a Python that imports *modules*, and the app at *address*.

    Only imports of the application run: data that `set_up` loads is not included. Raise
    `EngineError` if it cannot be imported within *patience_s*.
    """
    ours, theirs = os.pipe()
    with os.fdopen(ours, "rb") as answer:
        try:
            process = subprocess.Popen(  # noqa: S603 - no shell, and our own arguments
                [sys.executable, "-m", __name__, str(theirs), address, *modules],
                pass_fds=(theirs,),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,  # modules may print
                stderr=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": import_path()},
            )
        finally:
            os.close(theirs)
        try:
            _, said = process.communicate(timeout=patience_s)
        except subprocess.TimeoutExpired as error:
            process.kill()
            process.communicate()
            raise EngineError(f"importing took more than {patience_s:g} s") from error
        found = answer.read()
    if process.returncode or not found.isdigit():
        last = said.decode(errors="replace").strip().rpartition("\n")[2]
        raise EngineError(last or f"the process ended with status {process.returncode}")
    return int(found)


def main(answer: int, address: str, modules: Sequence[str]) -> None:
    """Import *modules* and the app at *address*; write this process's memory to *answer*."""
    for module in modules:
        import_module(module)
    if address:
        load(address)
    os.write(answer, str(psutil.Process().memory_info().rss).encode())


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
