"""Hosts and drivers of the applications of the papers are killed: results are exact."""

import pytest

from sojourn.spark.driver.kafka.ports import free_ports
from sojourn_papers.app_kills import KILLED, ran
from sojourn_papers.apps.catalogue import CATALOGUE
from sojourn_trial.kills.schedule import drawn

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]
SEED = 1


@pytest.fixture(autouse=True)
def _own_port(monkeypatch):
    """Let the service of the URL converter be that of this test."""
    monkeypatch.setenv("SOJOURN_URLS_PORT", str(free_ports(None)[0]))


@pytest.fixture(autouse=True)
def _small_window(monkeypatch):
    """Let windows slide while something is killed."""
    monkeypatch.setenv("SOJOURN_FPD_WINDOW", "100")
    monkeypatch.setenv("SOJOURN_FPD_THRESHOLD", "2")
    for name, value in {"WINDOW_S": 180, "SLIDE_S": 60, "LATENESS_S": 300}.items():
        monkeypatch.setenv(f"SOJOURN_TRAFFIC_{name}", str(value))


@pytest.mark.parametrize("name", CATALOGUE)
def test_results_are_exact_after_hosts_and_the_driver_were_killed(
    jars, short_folder, name, record_property
):
    """Two of each. What came again has the id and the value that it had before.

    Spark's aggregation counts words that come again, and states are compared in place of what
    sinks tell of them: see `spark_app_kills`.
    """
    kills = drawn(SEED, kills=4, within_s=30.0, targets=KILLED)
    ended = ran(short_folder, name, kills, seed=SEED, jars=jars)
    record_property("ended", str(ended))
    assert ended.exact, str(ended)
    assert ended.verdict.expected + ended.verdict.rows > 0


def test_words_are_counted_once_whatever_processors_are_killed(
    jars, short_folder, record_property
):
    """Their host deals with it, and Spark does not notice: nothing is repeated."""
    kills = drawn(SEED, kills=6, within_s=30.0, targets=("processor",))
    ended = ran(short_folder, "wordcount", kills, seed=SEED, jars=jars)
    record_property("ended", str(ended))
    assert ended.exact, str(ended)
    assert not any(ended.again.values()), str(ended)
    assert ended.verdict.rows > 0
