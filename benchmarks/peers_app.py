"""Chains of any length whose operators pass records on and do nothing else.

`peers_app:chain_3_a` has three operators. What follows the number only makes the name, and so
the topics, differ from those of other chains on the same broker.
"""

import re
from functools import cache

import sojourn as sj

_NAME = re.compile(r"chain_(\d+)_\w+")
_SERVICE_S = 1e-4


def passed(seed):
    """Pass it on."""
    yield (seed,)


@cache
def chain(name):
    """Return the application of that name; None if it is not the name of a chain."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    app = sj.App(name)
    stream = app.source("source", schema="seed long")
    for number in range(int(found[1])):
        stream = app.operator(
            reads=stream, emits="seed long", name=f"pass-{number}", service_s=_SERVICE_S
        )(passed)
    app.sink(stream)
    return app


def __getattr__(name):
    app = chain(name)
    if app is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return app
