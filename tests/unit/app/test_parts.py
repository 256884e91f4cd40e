"""Which operators run together: those that streams outside of Kafka connect."""

import pytest

import sojourn as sj
from sojourn.app.parts import Part, parts_of, streams_in_kafka
from sojourn.errors import BadApplication


def application(**settings):
    app = sj.App("shop", **settings)
    return app, app.source("orders", schema="id long")


def function(app, name, reads, emits=None, **settings):
    """Add an operator that reads one stream or several, and sends on or not."""

    def one(id):  # noqa: A002 - as the column is called
        yield (id,)

    def several(stream, record):
        yield (stream, record)

    def last(id):  # noqa: A002 - as the column is called
        del id

    def last_of_several(stream, record):
        del stream, record

    many = isinstance(reads, list)
    work = (
        (several if many else one) if emits is not None else (last_of_several if many else last)
    )
    return app.operator(reads=reads, emits=emits, name=name, **settings)(work)


def groups(app):
    return [part.operators for part in parts_of(app)]


def test_a_chain_is_one_part_and_its_first_operator_names_it():
    app, orders = application()
    check = function(app, "check", orders, "id long")
    price = function(app, "price", check, "id long")
    app.sink(price)
    assert parts_of(app) == (
        Part(
            name="check",
            operators=("check", "price"),
            reads=("orders",),
            writes=("price",),
            inner=("check",),
        ),
    )
    assert streams_in_kafka(app) == {"orders"}


def test_a_split_and_a_join_are_one_part():
    app, orders = application()
    check = function(app, "check", orders, "id long")
    left = function(app, "left", check, "id long")
    right = function(app, "right", check, "id long")
    both = function(app, "both", [left, right], "id long")
    app.sink(both)
    assert groups(app) == [("check", "left", "right", "both")]


def test_operators_that_meet_only_later_are_one_part():
    app, orders = application()
    others = app.source("others", schema="id long")
    one = function(app, "one", orders, "id long")
    two = function(app, "two", others, "id long")
    assert groups(app) == [("one",), ("two",)]
    function(app, "both", [one, two])
    assert groups(app) == [("one", "two", "both")]
    (part,) = parts_of(app)
    assert part.reads == ("orders", "others")


def test_a_loop_is_one_part_that_reads_what_it_writes_in_memory():
    app, orders = application()
    back = app.stream("back", schema="id long")
    check = function(app, "check", [orders, back], "id long")
    function(app, "again", check, back)
    (part,) = parts_of(app)
    assert part.operators == ("check", "again")
    assert (part.reads, part.writes, part.inner) == (("orders",), (), ("back", "check"))


def test_two_operators_on_one_source_that_nothing_connects_are_two_parts():
    app, orders = application()
    function(app, "check", orders, "id long")
    function(app, "log", orders)
    assert groups(app) == [("check",), ("log",)]
    assert [part.reads for part in parts_of(app)] == [("orders",), ("orders",)]


def test_what_sparks_own_operators_read_and_write_is_in_kafka():
    app, orders = application()
    check = function(app, "check", orders, "id long")
    columns, emits = {"n": "count(*)"}, "id long, n long"
    count = app.aggregate("count", reads=check, by="id", columns=columns, emits=emits)
    function(app, "store", [count])
    assert streams_in_kafka(app) == {"orders", "check", "count"}
    assert groups(app) == [("check",), ("store",)]
    assert [(part.writes, part.inner) for part in parts_of(app)] == [(("check",), ()), ((), ())]


def projection(app, name, reads, **settings):
    return app.project(name, reads=reads, columns={"id": "id"}, emits="id long", **settings)


def test_a_projection_of_what_one_part_alone_reads_belongs_to_it():
    app, orders = application()
    clean = projection(app, "clean", orders)
    check = function(app, "check", clean.by("id"), "id long")
    app.sink(check)
    assert parts_of(app) == (
        Part(
            name="check",
            operators=("check",),
            reads=("orders",),
            writes=("check",),
            inner=("clean",),
            before=("clean",),
        ),
    )
    assert streams_in_kafka(app) == {"orders"}


def test_of_projections_in_a_row_the_one_next_to_functions_belongs_to_their_part():
    app, orders = application()
    second = projection(app, "second", projection(app, "first", orders))
    function(app, "check", second)
    (part,) = parts_of(app)
    assert (part.reads, part.before, part.inner) == (("first",), ("second",), ("second",))
    assert streams_in_kafka(app) == {"orders", "first"}


def test_a_projection_between_functions_needs_one_topic_instead_of_two():
    app, orders = application()
    check = function(app, "check", orders, "id long")
    function(app, "store", projection(app, "clean", check))
    assert streams_in_kafka(app) == {"orders", "check"}
    assert [(part.operators, part.before) for part in parts_of(app)] == [
        (("check",), ()),
        (("store",), ("clean",)),
    ]


def read_by_two_parts(app, orders):
    clean = projection(app, "clean", orders)
    function(app, "check", clean)
    function(app, "store", clean)


def read_by_spark_too(app, orders):
    clean = projection(app, "clean", orders)
    function(app, "check", clean)
    app.aggregate("count", reads=clean, by="id", columns={"n": "count(*)"})


def read_beside_its_source(app, orders):
    function(app, "both", [orders, projection(app, "clean", orders)])


def sink_in_the_middle(app, orders):
    clean = projection(app, "clean", orders)
    function(app, "check", clean)
    app.sink(clean)


def declared_durable(app, orders):
    function(app, "check", projection(app, "clean", orders, durable=True))


@pytest.mark.parametrize(
    "described",
    [
        read_by_two_parts,
        read_by_spark_too,
        read_beside_its_source,
        sink_in_the_middle,
        declared_durable,
    ],
)
def test_a_projection_that_others_need_too_is_a_query_of_its_own(described):
    app, orders = application()
    described(app, orders)
    assert streams_in_kafka(app) >= {"orders", "clean"}
    assert not any(part.projections for part in parts_of(app))


def test_of_two_projections_of_one_stream_one_belongs_to_a_part():
    """A record that enters a part is one record there."""
    app, orders = application()
    one, two = (projection(app, name, orders) for name in ("one", "two"))
    function(app, "both", [one, two])
    (part,) = parts_of(app)
    assert (part.before, part.reads) == (("one",), ("two", "orders"))


def test_parts_may_project_the_same_stream_each_for_itself():
    app, orders = application()
    for name in ("one", "two"):
        function(app, f"after {name}".replace(" ", "_"), projection(app, name, orders))
    assert [(p.reads, p.before) for p in parts_of(app)] == [
        (("orders",), ("one",)),
        (("orders",), ("two",)),
    ]


def test_a_projection_that_makes_a_sink_of_what_a_part_writes_belongs_to_it():
    app, orders = application()
    check = function(app, "check", orders, "id long")
    app.sink(projection(app, "public", check))
    assert parts_of(app) == (
        Part(
            name="check",
            operators=("check",),
            reads=("orders",),
            writes=("public",),
            inner=("check",),
            behind=("public",),
        ),
    )
    assert streams_in_kafka(app) == {"orders"}


def test_what_a_projection_makes_a_sink_of_is_read_in_memory_and_may_be_a_sink_itself():
    app, orders = application()
    check = function(app, "check", orders, "id long")
    function(app, "store", check)
    app.sink(projection(app, "public", check))
    app.sink(check)
    (part,) = parts_of(app)
    assert part.operators == ("check", "store")
    assert (part.writes, part.inner) == (("check", "public"), ("check",))


def test_a_sink_of_what_two_parts_write_is_made_by_a_query_of_its_own():
    app, orders = application()
    both = app.stream("both", schema="id long")
    function(app, "one", orders, both)
    function(app, "two", orders, both)
    app.sink(projection(app, "public", both))
    assert groups(app) == [("one",), ("two",)]
    assert streams_in_kafka(app) == {"orders", "both", "public"}
    function(app, "store", both)
    app.sink(projection(app, "other", both))
    assert groups(app) == [("one", "two", "store")]
    assert parts_of(app)[0].behind == ("public", "other")


@pytest.mark.parametrize("who", ["a durable stream", "an aggregation", "an operator"])
def test_a_projection_of_what_is_in_kafka_anyway_is_a_query_of_its_own(who):
    app, orders = application()
    check = function(app, "check", orders, "id long", durable=who == "a durable stream")
    public = projection(app, "public", check)
    app.sink(public)
    if who == "an aggregation":
        app.aggregate("count", reads=check, by="id", columns={"n": "count(*)"})
    if who == "an operator":
        app.aggregate("count", reads=public, by="id", columns={"n": "count(*)"})
    assert streams_in_kafka(app) >= {"check", "public"}
    assert not any(part.projections for part in parts_of(app))


@pytest.mark.parametrize("how", ["operator", "stream"])
def test_a_durable_stream_parts_the_operators_before_and_after_it(how):
    app, orders = application()
    if how == "operator":
        check = function(app, "check", orders, "id long", durable=True)
    else:
        check = app.stream("check", schema="id long", durable=True)
        function(app, "checks", orders, check)
    price = function(app, "price", check, "id long")
    function(app, "store", price)
    assert streams_in_kafka(app) == {"orders", "check"}
    before, after = parts_of(app)
    assert (before.writes, before.inner) == (("check",), ())
    assert (after.operators, after.reads, after.inner) == (
        ("price", "store"),
        ("check",),
        ("price",),
    )


def test_where_all_streams_are_durable_each_operator_is_a_part():
    app, orders = application(streams="durable")
    check = function(app, "check", orders, "id long")
    price = function(app, "price", projection(app, "clean", check), "id long")
    app.sink(projection(app, "public", price))
    assert groups(app) == [("check",), ("price",)]
    assert streams_in_kafka(app) == {"orders", "check", "clean", "price", "public"}


def test_a_sink_in_the_middle_is_written_to_kafka_and_read_in_memory():
    app, orders = application()
    check = function(app, "check", orders, "id long")
    app.sink(check)
    function(app, "price", check)
    (part,) = parts_of(app)
    assert (part.operators, part.writes, part.inner) == (
        ("check", "price"),
        ("check",),
        ("check",),
    )
    assert streams_in_kafka(app) == {"orders"}


def test_durable_is_true_or_false_and_of_one_stream():
    app, orders = application()
    with pytest.raises(BadApplication, match=r"durable.*neither True nor False"):
        function(app, "check", orders, "id long", durable="yes")
    with pytest.raises(BadApplication, match=r"durable.*neither True nor False"):
        app.stream("back", schema="id long", durable=1)
    with pytest.raises(BadApplication, match=r"clean\.durable.*neither True nor False"):
        projection(app, "clean", orders, durable=None)
    with pytest.raises(BadApplication, match=r"durable= is for the one stream"):
        function(app, "check", orders, durable=True)
    with pytest.raises(BadApplication, match=r"durable= is for the one stream"):
        function(app, "check", orders, {"a": "id long", "b": "id long"}, durable=True)


def test_streams_are_in_memory_or_durable():
    with pytest.raises(BadApplication, match=r'write "in_memory" or "durable"'):
        application(streams="on_disk")
