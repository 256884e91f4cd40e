"""An application with all there is: functions, Spark's own operators, a sink without twins."""

import os

import sojourn as sj

app = sj.App("shop")
orders = app.source(
    "orders", schema="item string, number int, photo binary", topic="all-orders"
)
tips = app.source("tips", schema="item string")


def price_list():
    """Return what is set up once for each processor."""
    return {"tea": 2.0, "bread": 3.0}


@app.operator(
    reads=orders,
    emits="item string, total double, photo binary",
    set_up=price_list,
    on_error="dead_letter",
    service_s=0.001,
)
def price(prices, item, number, photo):
    """Yield what an order costs; an item that nobody sells is an error."""
    print(f"{os.getpid()} prices {item}")  # noqa: T201 - as user code does
    yield item, prices[item] * number, photo


@app.operator(
    reads=[price.stream.by("item"), tips.broadcast()],
    emits="item string, total double",
    service_s=0.001,
)
def taxed(stream, record):
    """Yield the total with tax; tips are heard by every processor, and make nothing."""
    if stream == "price":
        item, total, photo = record
        yield item, total + len(photo or b"")


dear = app.project(
    "dear",
    reads=taxed,
    columns={"item": "upper(item)", "total": "total"},
    emits="item string, total double",
)
sums = app.aggregate("sums", reads=dear, by="item", columns={"total": "sum(total)"})
app.sink(sums)
app.sink(taxed, name="taxed-once", deduplicate=True)
