"""The time limit of tests, which must end whatever a test does."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_a_property_ends_at_its_time_limit(tmp_path):
    """Hypothesis looks for simpler counterexamples: that must not go on without a limit."""
    test = tmp_path / "test_slow.py"
    test.write_text(
        "import time\n"
        "from hypothesis import given, strategies\n"
        "@given(strategies.lists(strategies.integers()))\n"
        "def test_slow(numbers):\n"
        "    time.sleep(0.1)\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider"]
    limits = ["-o", "timeout=2", "-o", "timeout_method=signal"]
    ended = subprocess.run(
        [*command, *limits, "--rootdir", tmp_path, "-c", "/dev/null", test],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert "TookTooLong: Timeout (>2.0s)" in ended.stdout
    assert "1 failed" in ended.stdout
