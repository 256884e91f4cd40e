"""The application with a record for each feature, as in the papers: features come in bulk.

`extract` yields the features of a frame one by one, `match` compares a single one with the
logos, and `aggregate` keeps the matches of a frame until all its features have come.

A frame is known by the id of its record: another may have the same name.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypedDict

import sojourn as sj
from sojourn_papers.apps.vld.application import (
    DETECTION,
    extractor,
    logos_on_one_core,
    sample_frames,
)
from sojourn_papers.apps.vld.records import Detection
from sojourn_papers.apps.vld.thresholds import LEAST_INLIERS

if TYPE_CHECKING:
    from sojourn_papers.apps.vld.features import Extractor
    from sojourn_papers.apps.vld.single_features import FrameJudge, SingleMatcher

_FRAME = "id string not null, frame string, width int, height int, features int"


class Gathered(TypedDict):
    """How many features of a frame have come, and their matches."""

    came: int
    matches: bytes


def single_matcher() -> "SingleMatcher":
    """Return what compares a feature with those of the logos."""
    from sojourn_papers.apps.vld.single_features import SingleMatcher  # noqa: PLC0415

    return SingleMatcher(logos_on_one_core())


def judge() -> "FrameJudge":
    """Return what tells logos by the matches of a frame."""
    from sojourn_papers.apps.vld.single_features import FrameJudge  # noqa: PLC0415

    return FrameJudge(logos_on_one_core())


app = sj.App("vld-bulk")
video = app.source("frames", schema="frame string, jpeg binary", samples=sample_frames)
detections = app.stream("detections", schema=DETECTION)


@app.operator(
    reads=video,
    emits=f"{_FRAME}, feature int, x float, y float, descriptor binary",
    set_up=extractor,
    record_id=True,
    on_error="dead_letter",
    service_s=0.1,
    service_scv=0.1,
    sends=1_100.0,
)
def extract(
    extractor: "Extractor", identity: str, frame: str, jpeg: bytes
) -> Iterator[tuple[str, str, int, int, int, int, float, float, bytes]]:
    """Yield the SIFT features of a frame, one by one."""
    found = extractor(jpeg)
    of_frame = identity, frame, found.width, found.height, len(found.points)
    each = zip(found.points.tolist(), found.descriptors, strict=True)
    for feature, ((x, y), descriptor) in enumerate(each):
        yield (*of_frame, feature, x, y, descriptor.tobytes())


@app.operator(
    reads=extract,
    emits=f"{_FRAME}, matches binary",
    set_up=single_matcher,
    service_s=0.0004,
)
def match(
    matcher: "SingleMatcher", *feature: str | float | bytes
) -> Iterator[tuple[str | int | float | bytes, ...]]:
    """Yield the matches of a feature, also if there are none."""
    *of_frame, number, x, y, descriptor = feature
    yield (*of_frame, matcher(number, x, y, descriptor))  # type: ignore[arg-type]


@app.operator(
    reads=match.by("id"),
    emits=detections,
    state={"came": 0, "matches": b""},
    set_up=judge,
    service_s=0.00005,
    sends=0.001,
)
def aggregate(  # noqa: PLR0913, PLR0917 - columns
    judge: "FrameJudge",
    state: Gathered,
    _id: str,
    frame: str,
    width: int,
    height: int,
    features: int,
    matches: bytes,
) -> Iterator[Detection]:
    """Yield the logos of a frame when its last feature has come, and keep no more of it."""
    state["came"] += 1
    state["matches"] += matches
    if state["came"] < features:
        return
    for logo, inliers, box in judge(width, height, state["matches"]):
        if inliers >= LEAST_INLIERS:
            yield frame, logo, inliers, box
    state.clear()  # type: ignore[attr-defined]  # all fields have their defaults again


app.sink(detections)
