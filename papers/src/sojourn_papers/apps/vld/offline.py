"""What should be detected: by OpenCV directly, and by where the logos were placed."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import cv2
import numpy as np
from cv2.typing import MatLike

from sojourn_papers.apps.catalogue import Record, States
from sojourn_papers.apps.vld.frames import placements
from sojourn_papers.apps.vld.logos import logos
from sojourn_papers.apps.vld.records import Box, Candidate, Detection
from sojourn_papers.apps.vld.thresholds import (
    LEAST_INLIERS,
    MOST_FEATURES,
    RANSAC_ROUNDS,
    RATIO,
    TOLERANCE_PX,
)

_SAME_PLACE = 0.5

Place: TypeAlias = Sequence[float]


def answers(source: str, record: tuple[Any, ...]) -> Iterator[tuple[str, Detection]]:
    """Yield what is detected in a frame."""
    assert source == "frames"  # noqa: S101 - there is one source
    frame, jpeg = record
    for logo, inliers, box in _detected(jpeg):
        yield "detections", (frame, logo, inliers, box)


bulk = answers


def bulk_states(_records: Iterable[tuple[str, Record]]) -> States:
    """Return what is kept once all frames are complete: nothing."""
    return {"aggregate": {}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How detections compare with what was placed."""

    right: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float:
        """The part of detections that is right."""
        return self.right / max(self.right + self.wrong, 1)

    @property
    def recall(self) -> float:
        """The part of logos that was detected."""
        return self.right / max(self.right + self.missed, 1)


def score(frames: Iterable[str], detections: Iterable[Detection]) -> Score:
    """Return how good the detections in *frames*, ids of samples, are.

    A detection is right if that logo was placed there: their boxes share at least half of the
    area that they cover together.
    """
    images = logos()
    placed = {
        (frame, each.logo): cv2.boundingRect(each.corners)
        for frame in frames
        for each in placements(frame, images)
    }
    found = {(frame, logo): box for frame, logo, _, box in detections}
    right = sum(
        key in placed and _overlap(box, placed[key]) >= _SAME_PLACE
        for key, box in found.items()
    )
    return Score(right=right, wrong=len(found) - right, missed=len(placed) - right)


def _overlap(one: Iterable[int], other: Iterable[int]) -> float:
    """Return the part that two boxes share of what they cover together."""
    (x1, y1, w1, h1), (x2, y2, w2, h2) = one, other
    across = min(x1 + w1, x2 + w2) - max(x1, x2)
    down = min(y1 + h1, y2 + h2) - max(y1, y2)
    shared = max(across, 0) * max(down, 0)
    return shared / max(w1 * h1 + w2 * h2 - shared, 1)


# A check asks about the same frames again and again.
@cache
def _detected(jpeg: bytes) -> tuple[Candidate, ...]:
    picture = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_GRAYSCALE)
    assert picture is not None  # noqa: S101 - samples are JPEGs
    points, looks = _features(picture)
    found = ((name, _located(points, looks, name, picture.shape)) for name in logos())
    return tuple((name, *candidate) for name, candidate in found if candidate is not None)


def _located(
    points: list[Place], looks: MatLike, name: str, shape: tuple[int, ...]
) -> tuple[int, Box] | None:
    """Return the number of inliers and the box of a logo, None if it is not there."""
    (h, w), logo_points, logo_looks = _logo(name)
    pairs = [
        (logo_points[best.trainIdx], points[best.queryIdx])
        for best, second in cv2.BFMatcher(cv2.NORM_L2).knnMatch(looks, logo_looks, k=2)
        if best.distance < RATIO * second.distance
    ]
    if len(pairs) < LEAST_INLIERS:
        return None
    here, there = np.array(pairs, np.float32).swapaxes(0, 1)
    homography, inliers = cv2.findHomography(
        here, there, cv2.RANSAC, TOLERANCE_PX, maxIters=RANSAC_ROUNDS
    )
    if homography is None or inliers.sum() < LEAST_INLIERS:
        return None
    outline = np.array([[[0, 0], [w, 0], [w, h], [0, h]]], np.float32)
    corners = cv2.perspectiveTransform(outline, homography)[0].tolist()
    x = [round(min(max(x, 0), shape[1])) for x, _ in corners]
    y = [round(min(max(y, 0), shape[0])) for _, y in corners]
    return int(inliers.sum()), (min(x), min(y), max(x) - min(x), max(y) - min(y))


@cache
def _logo(name: str) -> tuple[tuple[int, ...], list[Place], MatLike]:
    image = cv2.cvtColor(logos()[name], cv2.COLOR_BGR2GRAY)
    return image.shape, *_features(image)


def _features(image: MatLike) -> tuple[list[Place], MatLike]:
    found, looks = cv2.SIFT.create(MOST_FEATURES).detectAndCompute(image, None)
    return [each.pt for each in found[:MOST_FEATURES]], looks[:MOST_FEATURES]
