"""Benchmarks are run by hand and seldom: here it is only seen that each can begin."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PEERS = {"quix_count", "quix_operator"}  # run in environments of their own, with the peer
MODULES = sorted({path.stem for path in BENCHMARKS.glob("*.py")} - PEERS)
PARTS = 2


@pytest.mark.parametrize("part", range(PARTS))
def test_benchmarks_import_what_there_is(part):
    names = MODULES[part::PARTS]
    done = subprocess.run(
        [sys.executable, "-c", "".join(f"import {name}\n" for name in names)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(BENCHMARKS), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
