"""Whether executors have room for processors: settings of Spark, and real imports."""

import pytest

import sojourn as sj
from sojourn.act.node_scaling import NodeBounds
from sojourn.errors import BadInput, EngineError
from sojourn.spark.driver.layout import Layout
from sojourn.spark.driver.nodes.memory_need import (
    MemoryNeed,
    executor_warning,
    footprint_bytes,
    memory_warning,
    overhead_mib,
    read_mib,
)

OVERHEAD = "spark.executor.memoryOverhead"


def test_what_is_advised_is_enough():
    for needed_mib in (1, 63, 900, 12_345):
        warning = memory_warning({"spark.executor.memory": "8g"}, needed_mib)
        advised = warning.rpartition(f"--conf {OVERHEAD}=")[2]
        assert (
            memory_warning({"spark.executor.memory": "8g", OVERHEAD: advised}, needed_mib) == ""
        )


def test_an_overhead_that_is_set_counts_as_it_is():
    factor = {"spark.executor.memory": "10g", "spark.executor.memoryOverheadFactor": "0.4"}
    assert overhead_mib(factor) == 4096
    assert overhead_mib({**factor, OVERHEAD: "100"}) == 100
    assert overhead_mib({"spark.executor.minMemoryOverhead": "1g"}) == 1024
    assert "executors have 100 MiB" in memory_warning({**factor, OVERHEAD: "100"}, 1)


@pytest.mark.parametrize("text", ["", "much", "1.5g", "-1m", "2gm"])
def test_a_size_that_is_none_is_refused(text):
    with pytest.raises(BadInput, match="write a size such as 2g"):
        read_mib(OVERHEAD, text)


@pytest.mark.parametrize("factor", ["", "a lot", "inf", "nan"])
def test_a_factor_that_is_none_is_refused(factor):
    with pytest.raises(BadInput, match=r"memoryOverheadFactor is .*; write 0.1"):
        overhead_mib({"spark.executor.memoryOverheadFactor": factor})


@pytest.fixture(scope="module")
def layout():
    app = sj.App("words")
    lines = app.source("lines", schema="word string")

    @app.operator(reads=lines, emits="word string")
    def split(word):
        yield (word,)

    return Layout(app, "unit.spark.host.application:app")


def test_more_processors_on_a_node_need_more(layout):
    def needed(master, processors):
        bounds = NodeBounds(processors=processors)
        return executor_warning(layout, bounds, 2, {"spark.master": master})

    assert needed("spark://left:7077", 1000) == ""
    few, many = needed("yarn", 1), needed("k8s://left:6443", 1000)
    advised = [int(each.rpartition("=")[2].removesuffix("m")) for each in (few, many)]
    assert advised[1] > advised[0] + 5000


def test_what_is_imported_is_measured():
    bare = footprint_bytes([])
    assert bare > 1 << 20
    assert footprint_bytes(["numpy"]) > bare + (5 << 20)


def test_an_import_that_does_not_end_is_given_up(tmp_path, monkeypatch):
    (tmp_path / "endless.py").write_text("import time\ntime.sleep(1000)")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(EngineError, match=r"importing took more than 0\.5 s"):
        footprint_bytes(["endless"], patience_s=0.5)


def test_what_cannot_be_imported_is_said():
    with pytest.raises(EngineError, match="No module named 'nosuch'"):
        footprint_bytes(["nosuch"])
    with pytest.raises(EngineError, match=r"nosuch"):
        MemoryNeed.measured("nosuch:app")
