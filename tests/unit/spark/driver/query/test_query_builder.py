"""Where queries go on, of topics from which what was read is removed."""

from pathlib import Path

import sojourn as sj
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.layout import Layout
from sojourn.spark.driver.query.query_builder import QueryBuilder
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.state.checkpoints import Checkpoints


def application(streams="in_memory", *, durable=False):
    app = sj.App("shop", streams=streams)
    orders = app.source("orders", schema="item string")

    @app.operator(reads=orders, emits="item string", durable=durable)
    def check(item):
        yield (item,)

    @app.operator(reads=check, emits="item string")
    def pack(item):
        yield (item,)

    app.sink(pack)
    app.aggregate("sold", reads=check, by="item", columns={"n": "count(*)"})
    app.sink(app.streams["sold"])
    return app


def test_only_what_nobody_else_needs_is_removed():
    assert Layout(application(), "").passing_topics == ["shop.check"]
    assert Layout(application(durable=True), "").passing_topics == []
    assert Layout(application("durable"), "").passing_topics == []


def test_all_that_read_a_topic_tell_where_they_go_on(tmp_path):
    layout, state = Layout(application(), ""), Checkpoints(tmp_path)
    topics = dict.fromkeys(layout.topics, 1)
    builder = QueryBuilder(
        layout=layout,
        settings=SparkSettings(),
        cluster=Cluster("nowhere:1"),
        state=state,
        session=None,
        hosts=Path(),
        marks={},
        partitions=topics,
    )
    for query, offset in {"pack": 7, "sold": 5, "misfits of sold": 6}.items():
        state.begin(query, {"shop.check": {0: offset}})
    told = [each for each in builder.committed(["shop.check"]) if each]
    assert sorted(each["shop.check"][0] for each in told) == [5, 6, 7]
    checkpoint = state.checkpoint("sold")
    for log in ("offsets", "commits"):
        (checkpoint / log).mkdir(parents=True)
    for batch in range(4):  # three of which Spark may lose
        ends = f'v1\n{{}}\n{{"shop.check":{{"0":{9 + batch}}}}}'
        (checkpoint / "offsets" / str(batch)).write_text(ends)
        (checkpoint / "commits" / str(batch)).write_text("v1\n{}")
        told = [each for each in builder.committed(["shop.check"]) if each]
        least = 9 if batch == 3 else 5
        assert sorted(each["shop.check"][0] for each in told) == sorted([6, 7, least])
