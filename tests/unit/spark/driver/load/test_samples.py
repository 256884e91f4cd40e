from itertools import islice
from pathlib import Path

import pytest

from sojourn.app.loading import load
from sojourn.errors import BadApplication, BadRecord
from sojourn.spark.driver.load.samples import load_sources, messages
from sojourn.spark.wire.headers import BLOB

ADDRESS = "unit.spark.sampled:app"
VLD = str(Path(__file__).parents[5] / "examples/vld.yaml")
STEADY = ((0.0, 5.0),)


def test_samples_are_written_as_the_source_reads_them():
    assert list(islice(messages(f"{ADDRESS} photos", 3), 2)) == [
        (b'{"name":"3-0"}', {f"{BLOB}photo": b"\x00\x00\x00"}),
        (b'{"name":"3-1"}', {f"{BLOB}photo": b"\x01\x01\x01"}),
    ]


def test_samples_may_end():
    assert list(messages(f"{ADDRESS} few", 9)) == [(b'{"n":9}', {})]


def test_what_raises_is_said_with_its_source():
    sent = messages(f"{ADDRESS} broken", 1)
    assert next(sent)
    with pytest.raises(
        BadApplication, match=r"sources\.broken\.samples: .*ValueError: no more"
    ):
        next(sent)


def test_a_sample_that_does_not_fit_its_source_is_refused():
    with pytest.raises(BadRecord, match=r"odd\.n"):
        next(messages(f"{ADDRESS} odd", 1))


def test_a_load_sends_the_samples_of_each_source():
    (source,) = load_sources(
        load(ADDRESS), ADDRESS, {"few": STEADY}, gaps="uniform", at_once=3, most=7
    )
    assert (source.topic, source.records) == ("sampled.few", f"{ADDRESS} few")
    assert (source.points, source.gaps, source.at_once, source.most) == (
        STEADY,
        "uniform",
        3,
        7,
    )


def test_a_source_without_samples_is_named_with_its_topic():
    with pytest.raises(
        BadApplication, match=r"sources\.bare: .*write to the topic sampled\.bare"
    ):
        load_sources(load(ADDRESS), ADDRESS, {"bare": STEADY})


def test_a_topology_file_needs_no_samples():
    (source,) = load_sources(load(VLD), VLD, {"frames": STEADY})
    assert source.records == ""
