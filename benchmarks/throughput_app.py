"""One operator, and three in a row, that pass records on; in transfers of one, or as fit."""

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


one = passing("one", 1, 1)
three = passing("three", 3, 1)
one_auto = passing("one-auto", 1, None)
three_auto = passing("three-auto", 3, None)
APPS = {"one": one, "three": three, "one_auto": one_auto, "three_auto": three_auto}
