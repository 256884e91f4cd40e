"""One operator, and three in a row, that pass records on; in transfers of one, or as fit.

Beside one of them is another that reads the same records, and is far too slow for them.
"""

import time

import sojourn as sj


def passed(seed):
    """Pass it on."""
    yield (seed,)


def passing(name, operators, records_per_transfer):
    """Return an application of so many operators in a row."""
    app = sj.App(name)
    stream = app.source("source", schema="seed long")
    for number in range(operators):
        stream = app.operator(
            reads=stream,
            emits="seed long",
            name=f"pass-{number}",
            records_per_transfer=records_per_transfer,
        )(passed)
    app.sink(stream)
    return app


def held_up(name):
    """Return one operator that passes records on, and one that takes a second for each."""
    app = passing(name, 1, None)
    app.operator(reads=app.sources["source"], name="slow")(dawdled)
    return app


def dawdled(_seed):
    """Take a second."""
    time.sleep(1.0)


one = passing("one", 1, 1)
three = passing("three", 3, 1)
one_auto = passing("one-auto", 1, None)
three_auto = passing("three-auto", 3, None)
beside = held_up("beside")
APPS = {
    "one": one,
    "three": three,
    "one_auto": one_auto,
    "three_auto": three_auto,
    "beside": beside,
}
