"""Purchases are checked, counted in a state by key, and summed up by Spark itself."""

import sojourn as sj

app = sj.App("tally")
purchases = app.source("purchases", schema="item string")


@app.operator(reads=purchases, emits="item string", service_s=0.001)
def check(item):
    """Yield an item that has a name."""
    if item:
        yield (item,)


@app.operator(
    reads=check.by("item"), emits="item string, n bigint", state={"n": 0}, service_s=0.001
)
def count(state, item):
    """Yield an item with how often it was bought."""
    state["n"] += 1
    yield item, state["n"]


most = app.aggregate("most", reads=count, by="item", columns={"n": "max(n)"}, service_s=0.001)
app.sink(most)
app.sink(count, name="counted", deduplicate=True)
