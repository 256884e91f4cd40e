"""The Java that runs Spark and the broker."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from sojourn.errors import NoJava

# The oldest version that Spark 4 supports.
_LEAST = 17
# `java -version` takes a fraction of a second, unless the machine is busy.
_PATIENCE_S = 60.0
_VERSION = re.compile(r'version "(?:1\.)?(\d+)[^"]*"')


def find_java() -> Path:
    """Return the `java` in JAVA_HOME or, if that is not set, on the PATH.

    If JAVA_HOME is wrong, the PATH is not searched: Spark does not search it either, and would
    use another Java. Raise `NoJava` if there is no Java, or if it is too old.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if not os.access(java, os.X_OK):
            raise NoJava(f"JAVA_HOME is {home}, and {java} cannot be run", _LEAST)
    else:
        on_path = shutil.which("java")
        if on_path is None:
            raise NoJava("JAVA_HOME is not set, and java is not on the PATH", _LEAST)
        java = Path(on_path)
    said = _version_of(java)
    version = _VERSION.search(said)
    if version is None:
        raise NoJava(f"{java} -version printed no version: {said!r}", _LEAST)
    if int(version[1]) < _LEAST:
        raise NoJava(f"{java} is {version[0]}", _LEAST)
    return java


def _version_of(java: Path) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - the user's own Java
            [java, "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoJava(f"{java} cannot be run: {error}", _LEAST) from error
    return (done.stderr + done.stdout).strip()
