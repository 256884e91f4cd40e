"""Frequent pattern detection of DRS: the maximal frequent item sets of a sliding window.

Tweets enter the window at one source and leave it at another. `generate` makes candidates of
them: all sets of a tweet's items. `detect` counts those in the window by item set. A set that
becomes frequent, or no longer is, tells its immediate subsets, through a stream back to
`detect`; so each knows how many frequent supersets it has, and is maximal if there are none.
`report` keeps which sets are maximal, and yields each change.

Records may come to a set in any order: counts and numbers of supersets are sums, so what is
there in the end does not depend on it.
"""

import json
from collections.abc import Iterator
from typing import TypedDict

import sojourn as sj
from sojourn_papers.apps.fpd.items import candidates, immediate_subsets, items_of
from sojourn_papers.apps.fpd.samples import entering, leaving
from sojourn_papers.apps.fpd.settings import Settings

__all__ = ["Occurrence", "Reported", "app", "detect", "generate", "report"]

_CHANGE = "item_set string not null, change int not null"
_TWEET = "json string not null"


class Occurrence(TypedDict):
    """What is known of an item set: in how many tweets of the window it is.

    *supersets* is the number of its frequent immediate supersets. It may be negative for a
    moment, when it is told first that one no longer is frequent, and then that it became so.
    """

    count: int
    frequent: bool
    supersets: int


class Reported(TypedDict):
    """Whether an item set is maximal: if it became so once more than it ceased to be.

    *change* is the number of the last change that was reported.
    """

    maximal: int
    change: int


app = sj.App("fpd")
enters = app.source("entering", schema=_TWEET, samples=entering)
leaves = app.source("leaving", schema=_TWEET, samples=leaving)
notices = app.stream("notices", schema=_CHANGE)


@app.operator(
    reads=[enters, leaves],
    emits={"candidates": _CHANGE},
    set_up=Settings.of_environment,
    service_s=30e-6,
    sends={"candidates": 22.0},
    on_error="dead_letter",
)
def generate(
    settings: Settings, stream: str, record: tuple[str]
) -> Iterator[tuple[str, tuple[str, int]]]:
    """Yield the item sets of a tweet: each is in one tweet of the window more, or less."""
    change = 1 if stream == enters.name else -1
    items = items_of(json.loads(record[0]).get("text", ""), settings.items)
    for item_set in candidates(items, settings.largest):
        yield "candidates", (item_set, change)


@app.operator(
    reads=[generate["candidates"].by("item_set"), notices.by("item_set")],
    emits={"notices": notices, "changes": "item_set string, maximal boolean"},
    state={"count": 0, "frequent": False, "supersets": 0},
    set_up=Settings.of_environment,
    service_s=10e-6,
    sends={"notices": 0.013, "changes": 0.023},
)
def detect(
    settings: Settings, state: Occurrence, stream: str, record: tuple[str, int]
) -> Iterator[tuple[str, tuple[str, int | bool]]]:
    """Yield notices to subsets if a set becomes frequent, and whether it became maximal."""
    item_set, change = record
    was_maximal = _is_maximal(state)
    if stream == notices.name:
        state["supersets"] += change
    else:
        state["count"] += change
    frequent = state["count"] >= settings.threshold
    if frequent != state["frequent"]:
        state["frequent"] = frequent
        for subset in immediate_subsets(item_set):
            yield "notices", (subset, 1 if frequent else -1)
    if was_maximal != (is_maximal := _is_maximal(state)):
        yield "changes", (item_set, is_maximal)


def _is_maximal(state: Occurrence) -> bool:
    return state["frequent"] and state["supersets"] <= 0


@app.operator(
    reads=detect["changes"].by("item_set"),
    emits="item_set string, maximal boolean, change bigint",
    state={"maximal": 0, "change": 0},
    service_s=5e-6,
)
def report(
    state: Reported,
    item_set: str,
    maximal: bool,  # noqa: FBT001 - a column
) -> Iterator[tuple[str, bool, int]]:
    """Yield whether a set is maximal, if that has changed, with the number of the change."""
    was_maximal = state["maximal"] > 0
    state["maximal"] += 1 if maximal else -1
    if was_maximal != (is_maximal := state["maximal"] > 0):
        state["change"] += 1
        yield item_set, is_maximal, state["change"]


app.sink(report)
