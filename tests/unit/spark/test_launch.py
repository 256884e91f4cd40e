import sojourn as sj
from sojourn.spark.launch import windows


def shop():
    app = sj.App("shop")

    @app.operator(reads=app.source("orders", schema="item string"), emits="item string")
    def price(item):
        yield (item,)

    upper = {"item": "upper(item)"}
    dear = app.project("dear", reads=price, columns=upper, emits="item string")

    @app.operator(reads=dear, emits="item string")
    def gift(item):
        yield (item,)

    app.sink(price, name="price-once", deduplicate=True)
    app.sink(gift, name="gift-once", deduplicate=True)
    return app


def test_it_is_said_how_far_back_a_sink_remembers_where_that_matters():
    """A batch of Spark's own operators that has more records may write some of them twice."""
    said = (
        "sink gift-once is deduplicated against its last 100,000 records: "
        "a batch of 50 s at 2,000 records per second"
    )
    assert windows(shop(), 50.0) == [said]
