"""Words that are counted, with a state for each, and the same without: see `spark_wordcount`.

`wordcount_app:state_1` counts, `wordcount_app:stateless_1` does not. What follows only makes
the name, and so the topics, differ from those of other runs on the same broker.
"""

import re
from functools import cache

import sojourn as sj

_NAME = re.compile(r"(state|stateless)_\w+")
_SERVICE_S = 1e-4
_COUNTED = "seed long, word string, n long"


def count(state, seed, word):
    """Count a word."""
    state["n"] += 1
    yield seed, word, state["n"]


def passed(seed, word):
    """Do the same without a state."""
    yield seed, word, 1


@cache
def word_count(name):
    """Return the application of that name; None if it is not the name of one."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    app = sj.App(name)
    words = app.source("words", schema="seed long, word string")
    settings = {"reads": words.by("word"), "emits": _COUNTED, "service_s": _SERVICE_S}
    if found[1] == "state":
        counted = app.operator(**settings, name="count", state={"n": 0})(count)
    else:
        counted = app.operator(**settings, name="count")(passed)
    app.sink(counted)
    return app


def __getattr__(name):
    app = word_count(name)
    if app is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return app
