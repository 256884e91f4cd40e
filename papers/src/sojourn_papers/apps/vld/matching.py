"""Logos that may be in a frame: features that look alike, and lie as in the logo."""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import cv2
import numpy as np
import numpy.typing as npt

from sojourn_papers.apps.vld.features import Extractor, Features, Image, Points, read_features
from sojourn_papers.apps.vld.records import Box, Candidate
from sojourn_papers.apps.vld.thresholds import LEAST_INLIERS, RANSAC_ROUNDS, RATIO, TOLERANCE_PX

Places: TypeAlias = npt.NDArray[np.intp]


def logo_features(logos: Mapping[str, Image]) -> dict[str, Features]:
    """Return the features of *logos*, images by name."""
    extractor = Extractor()
    return {
        name: extractor.of_image(np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), np.uint8))
        for name, image in logos.items()
    }


def matches(descriptors: Image, logo: Features) -> tuple[Places, Places]:
    """Return which of the *descriptors* match a feature of the logo, and which of these."""
    # whole numbers below 2^24, also when squared and added: float32 is exact, and faster
    distances, nearest = cv2.batchDistance(
        descriptors.astype(np.float32),
        logo.descriptors.astype(np.float32),
        cv2.CV_32F,
        normType=cv2.NORM_L2,
        K=2,
    )
    match = distances[:, 0] < RATIO * distances[:, 1].astype(float)
    return np.flatnonzero(match), np.asarray(nearest[match, 0], np.intp)


def candidate(
    here: Points, there: Points, logo: Features, size: tuple[int, int]
) -> tuple[int, Box] | None:
    """Return how many matches lie as in the logo, and where; None if it cannot be there.

    Matches are *here* in the frame of this *size*, and *there* in the logo.
    """
    if len(here) < LEAST_INLIERS:
        return None
    homography, inliers = cv2.findHomography(
        there, here, cv2.RANSAC, TOLERANCE_PX, maxIters=RANSAC_ROUNDS
    )
    # OpenCV gives None where the matches lie on a line; its types do not say so
    return None if homography is None else (int(inliers.sum()), _box(homography, logo, size))


class Matcher:
    """Compares the features of frames with those of *logos*, images by name."""

    def __init__(self, logos: Mapping[str, Image]) -> None:
        self._logos = logo_features(logos)

    def __call__(
        self, width: int, height: int, points: bytes, descriptors: bytes
    ) -> Iterator[Candidate]:
        """Yield the logos that features may belong to, how many do, and where they are."""
        frame = read_features(width, height, points, descriptors)
        if not len(frame.points):
            return
        for name, logo in self._logos.items():
            here, there = matches(frame.descriptors, logo)
            found = candidate(frame.points[here], logo.points[there], logo, (width, height))
            if found is not None:
                yield name, *found


def _box(homography: cv2.typing.MatLike, logo: Features, size: tuple[int, int]) -> Box:
    """Return the left, top, width and height of the logo in a frame of this *size*."""
    w, h = logo.width, logo.height
    outline = np.array([[[0, 0], [w, 0], [w, h], [0, h]]], np.float32)
    corners = cv2.perspectiveTransform(outline, homography)[0]
    inside = np.clip(corners, 0, size).round().astype(int)
    (left, top), (right, bottom) = inside.min(axis=0).tolist(), inside.max(axis=0).tolist()
    return left, top, right - left, bottom - top
