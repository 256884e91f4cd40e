"""Projections next to functions: one before them, and one behind that makes sinks."""

import sojourn as sj


def check(_stream, record):
    """Yield what comes; a stone is an error."""
    item, twice, picture = record
    if item == "stone":
        raise ValueError("no stones here")
    yield item, twice, picture


def store(item, _n, _picture):
    """Yield the item."""
    yield (item,)


def application(name, streams="in_memory"):
    """Return an application; that which is alone has no other sinks."""
    app = sj.App(f"shelf-{name}", streams=streams)
    orders = app.source("orders", schema="item string not null, number int, photo binary")
    clean = app.project(
        "clean",
        reads=orders,
        columns={"item": "lower(item)", "twice": "number * 2", "picture": "photo"},
        emits="item string, twice int, picture binary",
        service_s=0.001,
    )
    checks = app.operator(
        reads=[clean.by("item")],
        emits="item string, n int, picture binary",
        on_error="dead_letter",
        service_s=0.001,
    )(check)
    large = "if(item = 'large', repeat('x', 2000000), upper(item))"
    public = app.project(
        "public",
        reads=checks,
        columns={"item": large, "n": "n + 1", "image": "picture"},
        service_s=0.001,
    )
    app.sink(public)
    if name == "alone":
        return app
    if streams == "in_memory":  # else it would need streams of one partition
        app.sink(public, name="once", deduplicate=True)
    app.sink(checks)
    app.sink(app.operator(reads=checks, emits="item string", service_s=0.001)(store))
    return app


in_memory, durable = application("in_memory"), application("durable", "durable")
alone = application("alone")
