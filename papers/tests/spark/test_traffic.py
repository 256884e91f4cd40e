"""Traffic monitoring: the last rows of the functions are those of a batch query of Spark."""

from itertools import islice
from operator import itemgetter

import pytest

from apps.test_traffic import Interleaved
from sojourn_papers.apps.traffic import offline
from sojourn_papers.apps.traffic.batch import batch_rows, write_reports
from sojourn_papers.apps.traffic.samples import made_up, samples
from sojourn_papers.apps.traffic.settings import Settings

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]
SETTINGS = Settings(cell_m=200, window_s=240, slide_s=60, lateness_s=120)


@pytest.fixture
def _set_to(monkeypatch):
    for name in ("cell_m", "window_s", "slide_s", "lateness_s"):
        monkeypatch.setenv(f"SOJOURN_TRAFFIC_{name.upper()}", str(getattr(SETTINGS, name)))


@pytest.mark.usefixtures("_set_to")
def test_the_last_rows_are_those_of_a_batch_query_over_the_same_file(jars, tmp_path):
    """Spark makes the windows and the speeds itself, from the file alone."""
    reports = [*islice(made_up(5), 3000), *jumps()]
    write_reports(tmp_path / "positions.parquet", reports)
    rows = batch_rows(tmp_path / "positions.parquet", SETTINGS, jars=jars)
    run = Interleaved(SETTINGS).run(sorted(reports, key=itemgetter(1)))
    assert offline.told(run.results) == {"rows": rows, "late": frozenset()}
    assert rows == offline.rows([("positions", report) for report in reports])["rows"]
    assert any(row[-1] for row in rows)


def jumps():
    """Yield a trip with positions that cannot be, gaps, and cells on both sides of 0."""
    place = 0
    for number, (gap_s, step) in enumerate(
        [(1, 0), (9, 900), (1, 99_999), (121, 10), (9, -200)]
    ):
        place += step
        yield "jumps", 1_168_300_800 + 200 * number + gap_s, place - 700, 450 - place


@pytest.mark.slow
def test_many_reports_have_the_rows_of_a_batch_query(jars, tmp_path):
    """Real ones where `SOJOURN_DATA` has them."""
    reports = list(islice(samples(1), 100_000))
    write_reports(tmp_path / "positions.parquet", reports)
    rows = batch_rows(tmp_path / "positions.parquet", Settings(), jars=jars)
    assert rows == offline.rows([("positions", report) for report in reports])["rows"]
