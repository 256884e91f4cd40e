"""The benchmark of processors on other nodes still runs, and finds what it looks for."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "node_waits.py"


@pytest.mark.slow
def test_its_quick_run_measures_everything(tmp_path):
    report = tmp_path / "found.json"
    subprocess.run([sys.executable, BENCHMARK, "--quick", "--json", report], check=True)
    found = json.loads(report.read_text(encoding="utf-8"))
    assert [waits["busy"] for waits in found["waits"]] == [0.65, 0.85]
    assert all(short["away_per_s"] > 0 for short in found["throughput"])
    assert sum(move["records"] for move in found["moves"]) > 0
    assert not any(move["lost"] or move["twice"] for move in found["moves"])
