"""The 16 logos to look for: real ones if there are files, otherwise drawn ones."""

import random
from collections.abc import Mapping

import cv2
import numpy as np

from sojourn_papers.apps.data import data_file
from sojourn_papers.apps.vld.features import Image

NAMES = (
    "amex",
    "apache-flink",
    "apache-spark",
    "docker",
    "github-octocat",
    "hadoop",
    "heroku",
    "ibm",
    "jenkins",
    "kafka",
    "mailchimp",
    "mastercard",
    "mongodb",
    "mysql",
    "postgresql",
    "raspberry-pi",
)
"""Those of the data that have many features, and few that others have too."""

_WIDTH, _HEIGHT = 420, 280
_SHAPES = 24
_WHITE = 255


def logos() -> Mapping[str, Image]:
    """Return the logos by name, in colour on white."""
    files = {name: data_file(f"logos/{name}.png") for name in NAMES}
    if None in files.values():
        return {f"logo-{letter}": _drawn(letter) for letter in "abcdefghijklmnop"}
    return {name: np.asarray(cv2.imread(str(file)), np.uint8) for name, file in files.items()}


def _drawn(letter: str) -> Image:
    """Return a letter behind shapes, the same for the same letter."""
    chance = random.Random(f"vld logo {letter}")  # noqa: S311 - no secret
    card = np.full((_HEIGHT, _WIDTH, 3), _WHITE, np.uint8)
    ink = [chance.randrange(120) for _ in range(3)]
    place = (chance.randrange(40, 240), chance.randrange(180, 240))
    cv2.putText(card, letter.upper(), place, cv2.FONT_HERSHEY_DUPLEX, 6, ink, thickness=14)
    for _ in range(_SHAPES):
        colour = [chance.randrange(220) for _ in range(3)]
        x, y = chance.randrange(30, _WIDTH - 30), chance.randrange(30, _HEIGHT - 30)
        size = chance.randrange(10, 45)
        if chance.random() < 0.3:
            cv2.circle(card, (x, y), size // 2, colour, thickness=chance.choice((-1, 4)))
        else:
            corners = [
                [x + chance.randint(-size, size), y + chance.randint(-size, size)]
                for _ in range(chance.choice((3, 4, 6)))
            ]
            cv2.fillPoly(card, [np.array(corners, np.int32)], colour)
    return card
