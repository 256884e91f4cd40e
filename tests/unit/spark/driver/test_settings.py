from dataclasses import replace
from pathlib import Path

import pytest

from sojourn.act.node_scaling import NodeBounds
from sojourn.errors import BadInput
from sojourn.spark.agent.resources import core_use
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.settings import SparkSettings, read_folder


def test_the_largest_message_is_what_the_producer_takes():
    assert SparkSettings().most_bytes == 1_048_576
    asked = {"max.request.size": "4194304"}
    assert SparkSettings(kafka=asked).most_bytes == 4_194_304
    cluster = Cluster("kafka:9092", asked)
    assert cluster.for_spark["kafka.max.request.size"] == "4194304"
    assert "max.request.size" not in cluster.for_clients  # of which librdkafka knows nothing


@pytest.mark.parametrize("size", ["", "-1", "4 MB", "100"])
def test_a_size_that_no_message_can_have_is_refused(size):
    with pytest.raises(BadInput, match=r"max\.request\.size .*; write 20000 or more"):
        SparkSettings(kafka={"max.request.size": size})


def test_tasks_have_several_heartbeats_before_they_are_lost():
    assert SparkSettings(relay_timeout_s=3).relay_timeout_s == 3
    with pytest.raises(BadInput, match=r"a relay timeout of 2\.5 s .*write 3 s or more"):
        SparkSettings(relay_timeout_s=2.5)


def test_only_what_goes_between_machines_can_be_encrypted():
    assert SparkSettings(master="local-cluster[1,2,1024]", encrypt=True).encrypt
    with pytest.raises(
        BadInput, match="encrypt needs a cluster, but master is local; leave it"
    ):
        SparkSettings(encrypt=True)


def test_nodes_have_room_for_the_tasks_that_queries_hold():
    settings = SparkSettings(master="local-cluster[1,4,1024]", min_nodes=1, max_nodes=8)
    assert settings.bounds(7) == NodeBounds(least=3, most=8, processors=4)
    assert settings.bounds(1).least == 1
    assert replace(settings, node_calm_s=5.0).bounds(1).calm_s == 5.0
    with pytest.raises(BadInput, match="max_nodes=3 needs a cluster, but master is local"):
        SparkSettings(max_nodes=3)
    with pytest.raises(BadInput, match="at most 1 nodes is below the minimum of 2"):
        SparkSettings(master="local-cluster[1,4,1024]", min_nodes=2, max_nodes=1)


@pytest.mark.parametrize(
    ("fields", "cores"),
    [
        ({"max_nodes": 8}, 32.0),
        ({"min_nodes": 2}, 8.0),
        ({"spark": {"spark.executor.instances": "3", "spark.executor.cores": "2"}}, 6.0),
        ({}, 4.0),
    ],
)
def test_on_a_cluster_the_cores_of_its_executors_are_expected(fields, cores):
    """The default of --max-processors follows from them, and not from those of the driver."""
    settings = SparkSettings(master="local-cluster[1,4,1024]", **fields)
    assert settings.expected_cores == cores
    assert SparkSettings().expected_cores == core_use().cores


@pytest.mark.parametrize("text", ["hdfs://name/orders", "s3a://bucket/orders", "abfss:/x"])
def test_storage_that_is_not_a_file_system_is_refused(text):
    with pytest.raises(BadInput, match="write the path of a folder"):
        read_folder(text)
    with pytest.raises(BadInput, match="is not on a file system"):
        SparkSettings(state=Path(text))


@pytest.mark.parametrize("text", ["file://other/orders", "file:orders", "FILE:"])
def test_an_address_of_a_file_that_is_not_here_is_refused(text):
    with pytest.raises(BadInput, match=r"write file:///PATH"):
        read_folder(text)


@pytest.mark.parametrize("text", ["c:orders", "a b:/c", "x:/y"])
def test_a_path_with_a_colon_is_a_path(text):
    assert read_folder(text) == Path(text)
