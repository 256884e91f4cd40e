"""One feature at a time: the logos that it matches, and what the matches of a frame tell."""

from collections.abc import Iterator, Mapping

import numpy as np

from sojourn_papers.apps.vld.features import Image
from sojourn_papers.apps.vld.matching import candidate, logo_features, matches
from sojourn_papers.apps.vld.records import Candidate

# What is kept of a match: the number of the feature in its frame, where it is, the number of
# the logo, and of the logo's feature.
_MATCH = np.dtype(
    [("feature", "<u2"), ("x", "<f4"), ("y", "<f4"), ("logo", "u1"), ("point", "<u2")]
)


class SingleMatcher:
    """Compares single features with those of *logos*, images by name."""

    def __init__(self, logos: Mapping[str, Image]) -> None:
        self._logos = tuple(logo_features(logos).values())

    def __call__(self, feature: int, x: float, y: float, descriptor: bytes) -> bytes:
        """Return the matches of a feature, one for each logo that it may belong to."""
        look = np.frombuffer(descriptor, np.uint8).reshape(1, -1)
        found = [
            (feature, x, y, number, int(there[0]))
            for number, logo in enumerate(self._logos)
            if len(there := matches(look, logo)[1])
        ]
        return np.array(found, _MATCH).tobytes()


class FrameJudge:
    """Tells which of *logos*, images by name, are in a frame by the matches of its features."""

    def __init__(self, logos: Mapping[str, Image]) -> None:
        self._logos = logo_features(logos)

    def __call__(self, width: int, height: int, found: bytes) -> Iterator[Candidate]:
        """Yield the logos that may be there; matches may be in any order."""
        ordered = np.sort(np.frombuffer(found, _MATCH), order="feature")
        for number, (name, logo) in enumerate(self._logos.items()):
            of_logo = ordered[ordered["logo"] == number]
            here = np.stack([of_logo["x"], of_logo["y"]], axis=1).astype(np.float32)
            there = logo.points[of_logo["point"]]
            told = candidate(here, there, logo, (width, height))
            if told is not None:
                yield name, *told
