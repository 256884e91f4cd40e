"""Words are counted in a state by key, and each number arrives once."""

import sojourn as sj

app = sj.App("counting")
words = app.source("words", schema="word string")


@app.operator(
    reads=words.by("word"), emits="word string, n bigint", state={"n": 0}, service_s=0.001
)
def count(state, word):
    """Yield a word with how often it has come."""
    state["n"] += 1
    yield word, state["n"]


app.sink(count, name="counts", deduplicate=True)
