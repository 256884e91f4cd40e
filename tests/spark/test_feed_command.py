import json

import pytest
from typer.testing import CliRunner

from sojourn.app.codec import codec_of
from sojourn.app.loading import load
from sojourn.cli import app as cli
from sojourn_papers.apps.topic_records import topic_records

pytestmark = pytest.mark.spark
ADDRESS = "unit.spark.sampled:app"


@pytest.fixture(scope="module", autouse=True)
def _topics(broker):
    broker.create_topics({"sampled.photos": 2, "sampled.few": 1})


def fed(servers, *options):
    given = ["feed", ADDRESS, "--bootstrap-servers", servers, *options]
    return CliRunner().invoke(cli, given)


def records(servers, source):
    stream = load(ADDRESS).sources[source]
    codec = codec_of(stream)
    clients = {"bootstrap.servers": servers}
    return [each.record for each in topic_records(clients, f"sampled.{source}", codec)]


def test_so_many_samples_as_were_asked_for_are_in_the_topic(servers):
    done = fed(servers, "--rate", "photos=500", "--records", "20", "--seed", "4", "--json")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert (report["sent"], report["failed"]) == ({"sampled.photos": 20}, {"sampled.photos": 0})
    assert sorted(records(servers, "photos")) == sorted(
        (f"4-{n}", bytes([n]) * 3) for n in range(20)
    )


def test_a_source_that_has_no_more_samples_ends_the_load(servers):
    done = fed(servers, "--rate", "few=500", "--gaps", "batches:3")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("1 records sent to sampled.few in ")
    assert records(servers, "few") == [(1,)]


def test_a_trace_is_divided_in_proportion_to_the_rates(servers, tmp_path):
    trace = tmp_path / "rates.csv"
    trace.write_text("timestamp,rate\n0,400\n0.5,400\n")
    done = fed(
        servers, "--trace", str(trace), "--rate", "photos=1", "--gaps", "constant", "--json"
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["sent"] == {"sampled.photos": 199}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "no rate is given; write --rate 13, or --trace rates.csv"),
        (["--rate", "13"], "--rate '13' is not SOURCE=PER_S"),
        (["--rate", "frames=3"], "--rate frames: there is no such source; there are photos"),
        (["--rate", "bare=3"], "sources.bare: it has no samples"),
        (["--rate", "few=3", "--gaps", "bursts"], "'bursts' is not a pattern of arrivals"),
        (["--rate", "odd=9"], "there is no topic sampled.odd; create it first"),
    ],
)
def test_what_cannot_be_sent_is_refused(servers, options, said):
    done = fed(servers, *options)
    assert done.exit_code in (2, 3)
    assert said in done.stderr


def test_without_brokers_the_application_must_run():
    done = CliRunner().invoke(cli, ["feed", ADDRESS, "--rate", "few=3"])
    assert done.exit_code == 3
    assert "sampled" in done.stderr
    assert "add --bootstrap-servers HOST:PORT" in done.stderr
