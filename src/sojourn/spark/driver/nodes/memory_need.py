"""The memory that executors need outside the Java heap, and a warning if they have less."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from sojourn.act.node_scaling import NodeBounds
from sojourn.app.loading import import_path
from sojourn.errors import BadInput, EngineError
from sojourn.spark.driver.layout import Layout
from sojourn.text import shown

_OVERHEAD = "spark.executor.memoryOverhead"
_MEMORY = "spark.executor.memory"
_MIB = 1 << 20
# Spark's defaults.
_MEMORY_DEFAULT, _LEAST_DEFAULT, _FACTOR_DEFAULT = "1g", "384m", "0.1"
_SIZE = re.compile(r"\s*(\d+)\s*([bkmgtp]?)b?\s*", re.IGNORECASE)
_UNITS = {"b": 1 / _MIB, "k": 1 / 1024, "": 1.0, "m": 1.0, "g": 2**10, "t": 2**20, "p": 2**30}
# Suggested values are multiples of this.
_STEP_MIB = 64
_PROCESSOR = ("sojourn.spark.processor.template", "sojourn.spark.processor.operator_job")
_PATIENCE_S = 60.0
# Runs in a process of its own, and imports nothing that the measured ones do not.
_FOOTPRINT = """
import os, sys
from importlib import import_module
import psutil
from sojourn.app.loading import load
answer, address, *modules = sys.argv[1:]
for module in modules:
    import_module(module)
if address:
    load(address)
os.write(int(answer), str(psutil.Process().memory_info().rss).encode())
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryNeed:
    """The memory of an agent, of a processor, and of a Python worker for a task of Spark."""

    agent_bytes: int
    processor_bytes: int
    task_bytes: int

    @classmethod
    def measured(cls, address: str) -> "MemoryNeed":
        """Measure processes on this machine with the same imports, for the app at *address*.

        Processors share memory with the template from which they are forked, but YARN adds up
        the resident memory of each process.
        """
        return cls(
            agent_bytes=footprint_bytes(["sojourn.spark.agent.agent"]),
            processor_bytes=footprint_bytes(_PROCESSOR, address),
            task_bytes=footprint_bytes(["pyspark.worker", "sojourn.spark.task.relay"]),
        )

    def node_mib(self, *, processors: int, templates: int, tasks: int) -> int:
        """Return the memory that a node needs for these numbers of processes and an agent.

        >>> each = MemoryNeed(agent_bytes=40 << 20, processor_bytes=50 << 20, task_bytes=0)
        >>> each.node_mib(processors=4, templates=1, tasks=0)
        290
        """
        # one more task: the process that Spark forks them from
        workers = (tasks + 1) * self.task_bytes
        total = self.agent_bytes + (processors + templates) * self.processor_bytes + workers
        return ceil(total / _MIB)


def executor_warning(
    layout: Layout, bounds: NodeBounds, tasks: int, conf: Mapping[str, str]
) -> str:
    """Return a warning if executors have too little memory outside the Java heap, else "".

    The *tasks* that read from Kafka are spread evenly over the minimum of nodes. Only YARN and
    Kubernetes kill executors that use more memory than they requested: for other masters
    nothing is measured. *conf* is that of the session.
    """
    master = conf.get("spark.master", "")
    if master != "yarn" and not master.startswith("k8s://"):
        return ""
    needed_mib = MemoryNeed.measured(layout.address).node_mib(
        processors=bounds.processors,
        templates=len(layout.functions),
        tasks=-(-tasks // bounds.least),
    )
    return memory_warning(conf, needed_mib)


def memory_warning(conf: Mapping[str, str], needed_mib: int) -> str:
    """Return a warning if executors of *conf* lack room for *needed_mib* beside Java, else "".

    >>> memory_warning({"spark.executor.memoryOverhead": "2g"}, 900)
    ''
    >>> memory_warning({}, 900)
    'executors have 384 MiB of memory outside the Java heap, but need about 1284 MiB: ...'
    """
    there, java = overhead_mib(conf), _spark_overhead_mib(conf)
    if there >= java + needed_mib:
        return ""
    advised = _STEP_MIB * ceil((java + needed_mib) / _STEP_MIB)
    return (
        f"executors have {there} MiB of memory outside the Java heap, but need about "
        f"{java + needed_mib} MiB: {java} for Java itself, {needed_mib} for the agent, "
        "processors and tasks in Python. The cluster ends executors that use more; write "
        f"--conf {_OVERHEAD}={advised}m"
    )


def overhead_mib(conf: Mapping[str, str]) -> int:
    """Return the memory that executors have outside the Java heap."""
    given = conf.get(_OVERHEAD)
    return _spark_overhead_mib(conf) if given is None else read_mib(_OVERHEAD, given)


def _spark_overhead_mib(conf: Mapping[str, str]) -> int:
    """Return Spark's default for that memory: a tenth of the heap, at least 384 MiB.

    >>> _spark_overhead_mib({}), _spark_overhead_mib({"spark.executor.memory": "20g"})
    (384, 2048)
    """

    def size(key: str, default: str) -> int:
        return read_mib(key, conf.get(key, default))

    factor = conf.get("spark.executor.memoryOverheadFactor", _FACTOR_DEFAULT)
    try:
        part = int(float(factor) * size(_MEMORY, _MEMORY_DEFAULT))
    except (ValueError, OverflowError) as error:
        raise BadInput(
            f"spark.executor.memoryOverheadFactor is {shown(factor)}; write 0.1"
        ) from error
    return max(size("spark.executor.minMemoryOverhead", _LEAST_DEFAULT), part)


def read_mib(key: str, text: str) -> int:
    """Return the size in MiB in *text*, the value of the setting *key*, as Spark parses it.

    >>> [read_mib("spark.executor.memory", text) for text in ("600m", "2G", "512", "4096kb")]
    [600, 2048, 512, 4]
    """
    found = _SIZE.fullmatch(text)
    if found is None:
        raise BadInput(f"{key} is {shown(text)}; write a size such as 2g or 600m")
    return int(int(found[1]) * _UNITS[found[2].lower()])


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
            done = subprocess.run(  # noqa: S603 - no shell, and our own arguments
                [sys.executable, "-c", _FOOTPRINT, str(theirs), address, *modules],
                pass_fds=(theirs,),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,  # modules may print
                stderr=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": import_path()},
                timeout=patience_s,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise EngineError(f"importing took more than {patience_s:g} s") from error
        finally:
            os.close(theirs)
        found = answer.read()
    if done.returncode or not found.isdigit():
        last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise EngineError(last or f"the process ended with status {done.returncode}")
    return int(found)
