"""A picture of frames, with what is detected in them."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, cast

import cv2
import numpy as np

from sojourn.app.operator import PythonOperator
from sojourn_papers.apps.vld.application import aggregate, extract, extractor, match, matcher
from sojourn_papers.apps.vld.features import Image, decoded
from sojourn_papers.apps.vld.frames import SHOT_FRAMES, frames, placements
from sojourn_papers.apps.vld.logos import logos
from sojourn_papers.apps.vld.records import Detection

_GREEN, _BLACK = (80, 220, 0), (0, 0, 0)
_FONT, _SIZE = cv2.FONT_HERSHEY_DUPLEX, 0.7


def sample_picture(seed: int) -> Image:
    """Return four frames of different clips, and what the operators detect in them."""
    images, samples = logos(), frames(seed)
    shots = [list(islice(samples, SHOT_FRAMES)) for _ in range(4)]
    chosen = [max(shot, key=lambda frame: len(placements(frame[0], images))) for shot in shots]
    extracts, matches = extractor(), matcher()

    def detected(frame: str, jpeg: bytes) -> Iterator[Detection]:
        for features in _yielded(extract, extracts, frame, jpeg):
            for candidates in _yielded(match, matches, *features):
                yield from cast("Iterator[Detection]", _yielded(aggregate, *candidates))

    drawn = [draw(jpeg, detected(frame, jpeg)) for frame, jpeg in chosen]
    return np.vstack([np.hstack(drawn[:2]), np.hstack(drawn[2:])])


def draw(jpeg: bytes, detections: Iterable[Detection]) -> Image:
    """Return the frame with the box, the name and the number of inliers of each logo."""
    picture = decoded(jpeg)
    for _, logo, inliers, (left, top, width, height) in detections:
        text = f"{logo} ({inliers})"
        (wide, high), _ = cv2.getTextSize(text, _FONT, _SIZE, 1)
        line = max(top, high + 12)
        cv2.rectangle(picture, (left, top), (left + width, top + height), _GREEN, 3)
        cv2.rectangle(picture, (left, line - high - 12), (left + wide + 8, line), _GREEN, -1)
        cv2.putText(picture, text, (left + 4, line - 6), _FONT, _SIZE, _BLACK, 1, cv2.LINE_AA)
    return picture


def _yielded(operator: PythonOperator, *arguments: object) -> Iterator[tuple[Any, ...]]:
    return cast("Iterator[tuple[Any, ...]]", operator(*arguments))
