"""The application: frames, features, candidates, detections.

OpenCV is optional, so what needs it is imported where it is called.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import sojourn as sj
from sojourn_papers.apps.vld.records import Candidate, Detection, FrameFeatures
from sojourn_papers.apps.vld.thresholds import LEAST_INLIERS

if TYPE_CHECKING:
    from sojourn_papers.apps.vld.features import Extractor, Image
    from sojourn_papers.apps.vld.matching import Matcher

_BOX = "struct<left: int, top: int, width: int, height: int>"
DETECTION = f"frame string, logo string, inliers int, box {_BOX}"
"""The columns of a detection."""


def sample_frames(seed: int) -> Iterator[tuple[str, bytes]]:
    """Return frames with logos, without end."""
    from sojourn_papers.apps.vld.frames import frames  # noqa: PLC0415

    return frames(seed)


def extractor() -> "Extractor":
    """Return what extracts features, on one core."""
    from sojourn_papers.apps.vld.features import Extractor, use_one_core  # noqa: PLC0415

    use_one_core()
    return Extractor()


def logos_on_one_core() -> "Mapping[str, Image]":
    """Return the logos, for a processor that compares them on one core."""
    from sojourn_papers.apps.vld.features import use_one_core  # noqa: PLC0415
    from sojourn_papers.apps.vld.logos import logos  # noqa: PLC0415

    use_one_core()
    return logos()


def matcher() -> "Matcher":
    """Return what compares with the features of the logos."""
    from sojourn_papers.apps.vld.matching import Matcher  # noqa: PLC0415

    return Matcher(logos_on_one_core())


app = sj.App("vld")
video = app.source("frames", schema="frame string, jpeg binary", samples=sample_frames)
detections = app.stream("detections", schema=DETECTION)


@app.operator(
    reads=video,
    emits="frame string, width int, height int, points binary, descriptors binary",
    set_up=extractor,
    on_error="dead_letter",
    service_s=0.09,
    service_scv=0.05,
)
def extract(extractor: "Extractor", frame: str, jpeg: bytes) -> Iterator[FrameFeatures]:
    """Yield the SIFT features of a frame."""
    found = extractor(jpeg)
    yield frame, found.width, found.height, *found.as_bytes()


@app.operator(
    reads=extract,
    emits=f"frame string, found array<struct<logo: string, inliers: int, box: {_BOX}>>",
    set_up=matcher,
    on_error="dead_letter",
    service_s=0.06,
    service_scv=0.3,
)
def match(
    matcher: "Matcher", frame: str, width: int, height: int, points: bytes, descriptors: bytes
) -> Iterator[tuple[str, list[Candidate]]]:
    """Yield the logos that may be in a frame, with the number of features that agree."""
    yield frame, list(matcher(width, height, points, descriptors))


@app.operator(reads=match, emits=detections, service_s=0.0001, sends=1.0)
def aggregate(frame: str, found: list[Candidate]) -> Iterator[Detection]:
    """Yield the logos of a frame with enough features that agree."""
    for logo, inliers, box in found:
        if inliers >= LEAST_INLIERS:
            yield frame, logo, inliers, box


app.sink(detections)
