"""The jars of Spark's Kafka connector and of the broker, downloaded once.

PySpark contains the Ivy that downloads them, so nothing else has to be installed.
`python -m sojourn.spark.driver.jvm.jars` downloads them ahead of time.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import TextIO

from sojourn.errors import BadFile, EngineError, JarsMissing, SojournError
from sojourn.spark.driver.jvm.java import find_java

# A release of Spark may be published before its connector. These revisions are known to work
# with a newer Spark; the token provider of the same revision is not published.
_NEXT_BEST = {"connector": "4.2.0", "token_provider": "4.1.0-preview1"}
_MARK = "complete.json"
# Ivy's settings, and `ivy.xml`, which lists the dependencies.
_HERE = Path(__file__).parent

# "\t\t:: org.apache.kafka#kafka_2.13;3.9.2: not found", with "!kafka_2.13.jar" for one file
_MISSING = re.compile(r"^\t\t:: ([^#\s]+)#([^;\s]+);([^:!\s]+)", re.MULTILINE)
_PROBLEM = re.compile(r"^\t([^\s=].*)", re.MULTILINE)
_THROWN = re.compile(
    r'^(?:Exception in thread "\S+" )?([\w.$]+(?:Exception|Error)\b.*)', re.MULTILINE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Jars:
    """The class paths of Spark and of the broker."""

    connector: str
    """Revision of Spark's Kafka connector."""
    spark: tuple[Path, ...]
    broker: tuple[Path, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ivy:
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
                *("-ivy", _HERE / "ivy.xml"),
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


def jars_folder() -> Path:
    """Return the folder of downloaded jars: SOJOURN_JARS, or `sojourn` in the user's cache."""
    given = os.environ.get("SOJOURN_JARS")
    if given:
        return Path(given).absolute()
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # the XDG specification says to ignore relative paths
    return (cache if cache.is_absolute() else Path.home() / ".cache") / "sojourn"


def resolve_jars(
    folder: Path | None = None,
    *,
    settings: Path | None = None,
    tell: Callable[[str], None] = lambda _what: None,
) -> Jars:
    """Return the jars in *folder*; download them if they are missing.

    *settings* is an Ivy settings file, for example one that names a mirror; its default is
    SOJOURN_IVY_SETTINGS. *tell* is called with a message before a download.
    """
    place = (folder or jars_folder()).absolute() / f"jars-{_wanted()}"
    ready = _complete(place)
    if ready is not None:
        return ready
    settings = _settings(settings)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with _locked(place.parent / "lock") as lock:
            # another process may have downloaded them while this one waited for the lock
            return _complete(place) or _downloaded(place, settings, lock.fileno(), tell)
    except OSError as error:
        problem = f"cannot be written: {error.strerror or error}"
        raise BadFile(
            str(place.parent), problem, "name another folder with SOJOURN_JARS"
        ) from error


def _downloaded(place: Path, settings: Path, lock: int, tell: Callable[[str], None]) -> Jars:
    """Download the jars, and move them to *place* atomically."""
    ivy = _Ivy(java=find_java(), settings=settings, cache=place.parent / "ivy", lock=lock)
    tell(f"downloading Spark's Kafka connector and a Kafka broker (once) to {place}")
    partial = place.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    connector = _connector(ivy, partial / "spark")
    ivy.retrieve("broker", partial / "broker", _NEXT_BEST)
    sizes = {
        str(jar.relative_to(partial)): jar.stat().st_size for jar in sorted(partial.glob("*/*"))
    }
    mark = {"wanted": _wanted(), "connector": connector, "sizes": sizes}
    (partial / _MARK).write_text(json.dumps(mark, indent=1), encoding="utf-8")
    shutil.rmtree(place, ignore_errors=True)  # it exists if it has become incomplete
    partial.rename(place)
    # after a failure, the cache saves the next attempt the downloads of this one
    shutil.rmtree(ivy.cache, ignore_errors=True)
    return _jars(place, connector, sizes)


def _connector(ivy: _Ivy, into: Path) -> str:
    """Download the connector of this Spark, or the next best; return its revision."""
    spark = _pyspark().version
    try:
        ivy.retrieve("spark", into, {"connector": spark, "token_provider": spark})
    except JarsMissing:
        shutil.rmtree(into, ignore_errors=True)
        ivy.retrieve("spark", into, _NEXT_BEST)
        return _NEXT_BEST["connector"]
    return spark


def _complete(place: Path) -> Jars | None:
    """Return the jars in *place*; None if one is missing or has the wrong size."""
    try:
        mark = json.loads((place / _MARK).read_text(encoding="utf-8"))
        whole = mark["wanted"] == _wanted() and all(
            (place / jar).stat().st_size == size for jar, size in mark["sizes"].items()
        )
        return _jars(place, mark["connector"], mark["sizes"]) if whole else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _jars(place: Path, connector: str, names: Iterable[str]) -> Jars:
    jars = [place / name for name in names]
    return Jars(
        connector=connector,
        spark=tuple(jar for jar in jars if jar.parent.name == "spark"),
        broker=tuple(jar for jar in jars if jar.parent.name == "broker"),
    )


def _wanted() -> str:
    """Return a hash of everything that determines the set of jars."""
    wanted = hashlib.sha256((_HERE / "ivy.xml").read_bytes())
    wanted.update(json.dumps([_pyspark().version, _NEXT_BEST]).encode())
    return wanted.hexdigest()[:16]


def _settings(given: Path | None) -> Path:
    named = given or Path(os.environ.get("SOJOURN_IVY_SETTINGS") or _HERE / "ivysettings.xml")
    try:
        named.open("rb").close()
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
        raise BadFile(str(named), problem, "name an Ivy settings file") from error
    return named.absolute()


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


@contextmanager
def _locked(path: Path) -> Iterator[TextIO]:
    """Lock a file exclusively.

    `flock` belongs to the open file: the lock lasts until all processes that inherited the
    descriptor have closed it.
    """
    with path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock


def main() -> int:
    """Download the jars; return the exit status."""
    try:
        jars = resolve_jars(tell=lambda what: print(f"{what} …"))
    except SojournError as error:
        print(f"sojourn: {error}", file=sys.stderr)
        return 1
    print(f"ready: Kafka connector {jars.connector}, broker ({len(jars.broker)} jars)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
