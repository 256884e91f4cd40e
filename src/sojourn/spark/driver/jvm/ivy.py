"""Downloads jars with the Ivy that PySpark contains, so nothing else has to be installed."""

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from sojourn.errors import EngineError, JarsMissing

__all__ = ["HERE", "Ivy", "spark_version"]

HERE = Path(__file__).parent
"""The folder of `ivy.xml`, which lists the dependencies."""

# "\t\t:: org.apache.kafka#kafka_2.13;3.9.2: not found", with "!kafka_2.13.jar" for one file
_MISSING = re.compile(r"^\t\t:: ([^#\s]+)#([^;\s]+);([^:!\s]+)", re.MULTILINE)
_PROBLEM = re.compile(r"^\t([^\s=].*)", re.MULTILINE)
_THROWN = re.compile(
    r'^(?:Exception in thread "\S+" )?([\w.$]+(?:Exception|Error)\b.*)', re.MULTILINE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ivy:
    """Ivy with its settings and its cache."""

    java: Path
    settings: Path
    cache: Path
    """Cache folder, which no other process may use at the same time."""
    lock: int
    """Descriptor of a locked file.

    Ivy inherits it, so the lock holds even if Ivy outlives the process that started it.
    """

    def retrieve(self, conf: str, into: Path, revisions: Mapping[str, str]) -> None:
        """Download the jars of the configuration *conf* of `ivy.xml` to the folder *into*.

        Raise `JarsMissing` with Ivy's message if a jar cannot be downloaded.
        """
        done = subprocess.run(  # noqa: S603 - no shell, and our own arguments
            [
                self.java,
                *(f"-Dsojourn.{name}={revision}" for name, revision in revisions.items()),
                "-jar",
                _jar(),
                *("-settings", self.settings),
                *("-cache", self.cache),
                *("-ivy", HERE / "ivy.xml"),
                *("-confs", conf),
                *("-retrieve", f"{into}/[artifact]-[revision].[ext]"),
            ],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            pass_fds=(self.lock,),
            check=False,
        )
        if done.returncode:
            raise self._told(conf, done.stdout, done.stderr)

    def _told(self, conf: str, out: str, err: str) -> JarsMissing:
        """Return the error, with the relevant lines of Ivy's output."""
        missing = dict.fromkeys(":".join(found) for found in _MISSING.findall(out))
        _, _, summary = out.partition(":: problems summary ::")
        # an exception is the root cause; "not found" only follows from it
        problem = _THROWN.search(err) or _PROBLEM.search(summary)
        said = problem[1] if problem else "not found" if missing else (err or out).strip()
        return JarsMissing(
            tuple(missing) or (f"the jars for the {conf} class path",),
            f"Ivy, with {self.settings}, says {said!r}",
        )


def spark_version() -> str:
    """Return the version of the installed PySpark."""
    return _pyspark().version


def _jar() -> Path:
    jars = Path(str(_pyspark().locate_file("pyspark/jars")))
    found = sorted(jars.glob("ivy-*.jar"))
    if not found:
        raise EngineError(f"there is no Ivy in {jars}; reinstall pyspark with pip")
    return found[-1]


def _pyspark() -> Distribution:
    try:
        return distribution("pyspark")
    except PackageNotFoundError as error:
        raise EngineError("pyspark is not installed; install sojourn[spark]") from error
