"""SIFT features of an image, and how they are written into a record."""

from dataclasses import dataclass
from typing import TypeAlias

import cv2
import numpy as np
import numpy.typing as npt

from sojourn_papers.apps.vld.thresholds import MOST_FEATURES

_NUMBERS = 128  # of a descriptor

Image: TypeAlias = npt.NDArray[np.uint8]
Points: TypeAlias = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """Features of an image of *width* and *height*.

    Row i of *points* is where feature i is, row i of *descriptors* what it looks like: 128
    whole numbers up to 255, so that they fit into bytes.
    """

    width: int
    height: int
    points: Points
    descriptors: Image

    def as_bytes(self) -> tuple[bytes, bytes]:
        """Return points and descriptors as they are in a record."""
        return self.points.astype("<f4").tobytes(), self.descriptors.tobytes()


def read_features(width: int, height: int, points: bytes, descriptors: bytes) -> Features:
    """Return the features of a record.

    Raise `ValueError` if there are not as many points as descriptors.
    """
    places = np.frombuffer(points, "<f4").astype(np.float32).reshape(-1, 2)
    looks = np.frombuffer(descriptors, np.uint8).reshape(-1, _NUMBERS)
    if len(places) != len(looks):
        raise ValueError(f"there are {len(places)} points and {len(looks)} descriptors")
    return Features(width=width, height=height, points=places, descriptors=looks)


class Extractor:
    """Extracts the strongest features of images."""

    def __init__(self) -> None:
        self._sift = cv2.SIFT.create(nfeatures=MOST_FEATURES)

    def __call__(self, encoded: bytes) -> Features:
        """Return the features of a JPEG or PNG; raise `ValueError` if it is none."""
        return self.of_image(decoded(encoded, cv2.IMREAD_GRAYSCALE))

    def of_image(self, image: Image) -> Features:
        """Return the features of a grey image."""
        found, descriptors = self._sift.detectAndCompute(image, None)
        if descriptors is None:
            descriptors = np.empty((0, _NUMBERS), np.float32)
        height, width = image.shape[:2]
        return Features(
            width=width,
            height=height,
            points=np.array([each.pt for each in found[:MOST_FEATURES]], np.float32).reshape(
                -1, 2
            ),
            descriptors=descriptors[:MOST_FEATURES].astype(np.uint8),
        )


def decoded(encoded: bytes, colours: int = cv2.IMREAD_COLOR) -> Image:
    """Return the image in a JPEG or PNG; raise `ValueError` if it is none."""
    image = cv2.imdecode(np.frombuffer(encoded, np.uint8), colours) if encoded else None
    if image is None:
        raise ValueError("the record has no image that OpenCV can read")
    return np.asarray(image, np.uint8)


def use_one_core() -> None:
    """Let OpenCV compute in one thread: a processor is one core."""
    cv2.setNumThreads(1)
