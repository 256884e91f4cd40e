"""Queries, topics and hosts of an application whose projections run with its functions."""

import pytest

import sojourn as sj
from sojourn.spark.driver.layout import Layout
from sojourn.spark.driver.state.checkpoints import Checkpoints


def shop(**settings):
    """Return an application with a projection before its function, and one behind it."""
    app = sj.App("shop", **settings)
    orders = app.source("orders", schema="id long", topic="all-orders")
    clean = app.project("clean", reads=orders, columns={"id": "id"}, emits="id long")

    @app.operator(reads=clean.by("id"), emits="id long")
    def check(id):  # noqa: A002 - as the column is called
        yield (id,)

    app.sink(
        app.project("public", reads=check, columns={"id": "id"}), deduplicate=True, name="o"
    )
    return app


def route(layout):
    return layout.route(
        "check", trace_per_s=1.0, most_bytes=9, marks={}, partitions={"shop.public": 3}
    )


def test_projections_next_to_functions_have_no_query_topic_or_slot_of_their_own():
    layout = Layout(shop(), "shop:app")
    assert (layout.queries, layout.natives) == (["check"], {})
    assert layout.topics == ["all-orders", "shop.public", "shop.dead-letters", "shop.retries"]
    assert layout.query_reads("check") == ["all-orders", "shop.retries"]
    partitions = {"all-orders": 2, "shop.retries": 1, "shop.public": 3}
    assert layout.slots(partitions) == {"check": 3, "sink o": 3}
    assert layout.inner_topics == []
    assert {name: list(layout.reads(name)) for name in layout.app.operators} == {
        "clean": ["all-orders"],
        "check": ["all-orders"],
        "public": [],
    }
    assert {name: layout.writes(name) for name in layout.app.operators} == {
        "clean": {},
        "check": {},
        "public": {"public": "shop.public"},
    }
    assert layout.entries() == {"check"}


def test_where_all_streams_are_durable_they_are_queries_as_ever():
    layout = Layout(shop(streams="durable"), "shop:app")
    assert layout.queries == ["clean", "check", "public"]
    assert list(layout.natives) == ["clean", "public"]
    assert route(layout).reads == {"shop.clean": "clean"}
    assert route(layout).before == route(layout).behind == {}


def test_a_route_says_what_projections_make():
    layout = Layout(shop(), "shop:app")
    made = route(layout)
    assert made.reads == {"all-orders": "clean"}
    assert made.before == {"all-orders": ("clean", "orders")}
    assert made.behind == {"public": "check"}
    assert made.writes == {"public": "shop.public"}
    assert made.partitions == {"shop.public": 3}
    assert [(name, s.key) for name, s in made.keyed["clean"]] == [("check", ("id",))]


def test_a_host_gives_away_what_projections_read(tmp_path):
    host = Layout(shop(), "shop:app").host(
        "check", tmp_path, Checkpoints(tmp_path), {"check": 1}
    )
    assert (host.leaving, host.behind) == (("public", "check"), {"public": "check"})
    assert (host.inner, host.projected) == (("clean", "check"), ("clean",))
    assert host.readers["clean"] == ("check",)


def test_what_projections_of_spark_write_for_a_deduplicated_sink_is_signed():
    assert Layout(shop(), "shop:app").signing_projections == frozenset()
    durable = Layout(shop(streams="durable"), "shop:app")
    assert durable.signing_projections == {"clean", "public"}


def chain(*, state):
    """Return an application of three parts, the last of which may keep a state."""
    app = sj.App("chain")
    lines = app.source("lines", schema="word string")

    @app.operator(reads=lines, emits="word string", durable=True)
    def first(word):
        yield (word,)

    @app.operator(reads=first, emits="word string", durable=True)
    def second(word):
        yield (word,)

    @app.operator(reads=second.by("word"), emits="word string", state=state)
    def third(*record):
        yield record[-1:]

    app.sink(third)
    return Layout(app, "chain:app")


@pytest.mark.parametrize(
    ("state", "kept"), [({"n": 0}, {"first": 3, "second": 2, "third": None}), (None, {})]
)
def test_what_leads_to_a_state_is_repeated_in_the_partition_where_it_was(state, kept):
    """A part that keeps a state knows for each partition what has come through it."""
    layout, numbers = (
        chain(state=state),
        {"chain.first": 3, "chain.second": 2, "chain.third": 4},
    )
    for part in ("first", "second", "third"):
        route = layout.route(part, trace_per_s=1, most_bytes=9, marks={}, partitions=numbers)
        assert route.partitions.get(f"chain.{part}") == kept.get(part)
        assert len(route.partitions) <= 1


@pytest.mark.parametrize(
    ("address", "there"),
    [("examples/vld.yaml", "vld.yaml"), ("/far/away/vld.yaml", "vld.yaml"), ("a:app", "a:app")],
)
def test_nodes_find_a_topology_file_by_its_name(tmp_path, address, there):
    """Spark ships it into the folder in which agents and processors work."""
    layout = Layout(shop(), address).on_nodes()
    host = layout.host("check", tmp_path, Checkpoints(tmp_path), {"check": 1})
    assert host.operators["check"].argument == f"{there} check"
