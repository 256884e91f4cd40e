"""The applications of the papers on Spark: results are those that plain Python works out."""

import pytest

from sojourn_papers.apps.catalogue import CATALOGUE
from sojourn_papers.apps.check import check

pytestmark = [pytest.mark.spark, pytest.mark.timeout(400)]
# Frames take a tenth of a second of computing each.
PER_S = {"vld": 1.5, "vld-bulk": 1.0, "urls": 15.0}
SHORT_S, LONG_S = 4.0, 30.0
# With state by key and with a loop; the longer run has all.
SHORT = ("wordcount", "fpd")


@pytest.fixture(autouse=True)
def _small_window(monkeypatch):
    """Let windows slide while samples are sent, and pairs of items be frequent in them."""
    monkeypatch.setenv("SOJOURN_FPD_WINDOW", "30")
    monkeypatch.setenv("SOJOURN_FPD_THRESHOLD", "2")
    for name, value in {"WINDOW_S": 90, "SLIDE_S": 30, "LATENESS_S": 60}.items():
        monkeypatch.setenv(f"SOJOURN_TRAFFIC_{name}", str(value))


@pytest.mark.usefixtures("jars")
@pytest.mark.parametrize("name", SHORT)
def test_results_are_those_worked_out_offline(name, tmp_path, monkeypatch):
    monkeypatch.delenv("SOJOURN_DATA", raising=False)
    found = check(
        CATALOGUE[name], per_s=PER_S.get(name, 30.0), lasts_s=SHORT_S, state=tmp_path / "state"
    )
    assert found.exact, str(found)
    assert found.expected + found.rows > 0


@pytest.mark.slow
@pytest.mark.usefixtures("jars")
@pytest.mark.parametrize("name", CATALOGUE)
def test_results_of_a_longer_run(name, tmp_path):
    found = check(
        CATALOGUE[name], per_s=PER_S.get(name, 30.0), lasts_s=LONG_S, state=tmp_path / "state"
    )
    assert found.exact, str(found)
    assert found.expected + found.rows > 0
