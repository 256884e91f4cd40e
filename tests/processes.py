"""Processes that a test starts: they end with it, whatever raises."""

import subprocess
from contextlib import contextmanager


@contextmanager
def started(command, **options):
    """Run *command* until the block is left, and kill it then if it still runs.

    `Popen` by itself waits for the process when the block is left, which is for ever where a
    failed assertion keeps the test from ending it.
    """
    with subprocess.Popen([*map(str, command)], **options) as process:
        try:
            yield process
        finally:
            process.kill()
