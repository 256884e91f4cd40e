"""Which executor a process belongs to."""

import subprocess
import sys

import pytest

from sojourn.errors import EngineError
from sojourn.spark.driver.nodes.executors import ExecutorProcess, executor_process

# Stands for the JVM: what counts is its command line.
PARENT = """
import subprocess, sys
subprocess.run([sys.executable, "-c", sys.argv[1]], check=True)
"""
CHILD = """
from sojourn.spark.driver.nodes.executors import executor_process
found = executor_process()
print(found.id, found.pid)
"""


def seen(*arguments):
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, CHILD, *arguments], stdout=subprocess.PIPE, text=True
    )
    said, _ = parent.communicate()
    name, pid = said.split()
    return parent.pid, ExecutorProcess(name, int(pid))


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["org.apache.spark.executor.Backend", "--executor-id", "12", "--cores", "2"], "12"),
        (["org.apache.spark.deploy.SparkSubmit", "pyspark-shell"], "driver"),
    ],
)
def test_it_is_the_one_above_in_the_tree_of_processes(arguments, name):
    pid, found = seen(*arguments)
    assert found == ExecutorProcess(name, pid)


def test_outside_of_a_task_there_is_none():
    with pytest.raises(EngineError, match="does not run in a task of Spark"):
        executor_process()
