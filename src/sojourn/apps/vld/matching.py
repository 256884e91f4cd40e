"""Logos that may be in a frame: features that look alike, and lie as in the logo."""

from collections.abc import Iterator, Mapping

import cv2
import numpy as np

from sojourn.apps.vld.features import Extractor, Features, Image, Points, read_features
from sojourn.apps.vld.records import Box, Candidate
from sojourn.apps.vld.thresholds import LEAST_INLIERS, RANSAC_ROUNDS, RATIO, TOLERANCE_PX

__all__ = ["Matcher"]


class Matcher:
    """Compares the features of frames with those of *logos*, images by name."""

    def __init__(self, logos: Mapping[str, Image]) -> None:
        extractor = Extractor()
        self._logos = {
            name: extractor.of_image(
                np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), np.uint8)
            )
            for name, image in logos.items()
        }

    def __call__(
        self, width: int, height: int, points: bytes, descriptors: bytes
    ) -> Iterator[Candidate]:
        """Yield the logos that features may belong to, how many do, and where they are."""
        frame = read_features(width, height, points, descriptors)
        if not len(frame.points):
            return
        for name, logo in self._logos.items():
            here, there = _matches(frame, logo)
            if len(here) < LEAST_INLIERS:
                continue  # it cannot have enough inliers
            homography, inliers = cv2.findHomography(
                there, here, cv2.RANSAC, TOLERANCE_PX, maxIters=RANSAC_ROUNDS
            )
            # OpenCV gives None where the matches lie on a line; its types do not say so
            if homography is not None:
                yield name, int(inliers.sum()), _box(homography, logo, frame)


def _matches(frame: Features, logo: Features) -> tuple[Points, Points]:
    """Return where features that match are in the frame, and where in the logo."""
    # whole numbers below 2^24, also when squared and added: float32 is exact, and faster
    distances, nearest = cv2.batchDistance(
        frame.descriptors.astype(np.float32),
        logo.descriptors.astype(np.float32),
        cv2.CV_32F,
        normType=cv2.NORM_L2,
        K=2,
    )
    match = distances[:, 0] < RATIO * distances[:, 1].astype(float)
    return frame.points[match], logo.points[nearest[match, 0]]


def _box(homography: cv2.typing.MatLike, logo: Features, frame: Features) -> Box:
    """Return the left, top, width and height of the logo in the frame."""
    w, h = logo.width, logo.height
    outline = np.array([[[0, 0], [w, 0], [w, h], [0, h]]], np.float32)
    corners = cv2.perspectiveTransform(outline, homography)[0]
    inside = np.clip(corners, 0, [frame.width, frame.height]).round().astype(int)
    (left, top), (right, bottom) = inside.min(axis=0).tolist(), inside.max(axis=0).tolist()
    return left, top, right - left, bottom - top
