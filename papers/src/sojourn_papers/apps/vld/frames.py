"""Frames of video clips with logos on them: where they are follows from the id of the frame."""

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count, cycle, islice
from pathlib import Path

import cv2
import numpy as np

from sojourn.errors import BadInput
from sojourn_papers.apps.data import data_file
from sojourn_papers.apps.vld.features import Image, Points
from sojourn_papers.apps.vld.logos import logos

SHOT_FRAMES = 8
"""After so many another clip has its turn: the number of features changes with it."""

CLIPS = (
    "soccer_keeper_960x540_b.mp4",
    "basketball_pexels_640x360.mp4",
    "soccer_indoor_960x540_a.mp4",
    "car_detection_768x432.mp4",
    "soccer_kick_852x480_c.mp4",
)
"""Files of the data, all as wide as television."""

_WIDTH, _HEIGHT = 960, 540
_JPEG_QUALITY = 80

_LOGO_PX = 200
_TURN_DEGREES = 8
_PERSPECTIVE = 0.04
# From the edge of a frame or a half to the middle of a logo: its half diagonal and some more.
_MARGIN_PX = 155
_LEAVES, _EARTH = 200, (30, 45, 50)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where a logo is in a frame: its corners, from the top left one clockwise."""

    logo: str
    corners: Points


def frames(seed: int) -> Iterator[tuple[str, bytes]]:
    """Yield the ids of frames and their JPEGs, without end."""
    images = logos()
    for number, picture in enumerate(_pictures()):
        frame = f"{seed}-{number}"
        for placed in placements(frame, images):
            _paste(picture, images[placed.logo], placed.corners)
        quality = [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY]
        _, jpeg = cv2.imencode(".jpg", picture, quality)
        yield frame, jpeg.tobytes()


def placements(frame: str, images: Mapping[str, Image]) -> tuple[Placement, ...]:
    """Return the logos in a frame: none or one in each half."""
    chance = random.Random(f"vld frame {frame}")  # noqa: S311 - no secret
    names = chance.sample(list(images), 2)
    return tuple(
        Placement(logo=name, corners=_corners(chance, images[name], left=left))
        for name, left in zip(names, (0, _WIDTH // 2), strict=True)
        if chance.random() < 0.5
    )


def _corners(chance: random.Random, image: Image, *, left: int) -> Points:
    """Return corners in the half of a frame that starts at *left*."""
    height, width = image.shape[:2]
    across, down = (_LOGO_PX * side / max(width, height) / 2 for side in (width, height))
    corners = np.array([[-across, -down], [across, -down], [across, down], [-across, down]])
    bent = [[chance.uniform(-_PERSPECTIVE, _PERSPECTIVE) for _ in range(2)] for _ in corners]
    corners *= 1 + np.array(bent)
    turn = math.radians(chance.uniform(-_TURN_DEGREES, _TURN_DEGREES))
    turned = corners @ [[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]]
    x = left + chance.uniform(_MARGIN_PX, _WIDTH / 2 - _MARGIN_PX)
    y = chance.uniform(_MARGIN_PX, _HEIGHT - _MARGIN_PX)
    return np.asarray(turned + np.array([x, y]), np.float32)


def _paste(picture: Image, logo: Image, corners: Points) -> None:
    """Draw the logo into the picture."""
    scale = _LOGO_PX / max(logo.shape)
    small = cv2.resize(logo, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    height, width = small.shape[:2]
    outline = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
    cv2.warpPerspective(
        small,
        cv2.getPerspectiveTransform(outline, corners),
        (_WIDTH, _HEIGHT),
        dst=picture,
        borderMode=cv2.BORDER_TRANSPARENT,
    )


def _pictures() -> Iterator[Image]:
    """Yield pictures of the clips in turn: real ones if all are there, otherwise drawn."""
    files = [data_file(f"video/{name}") for name in CLIPS]
    played = [_played(file) for file in files if file is not None]
    if len(played) < len(files):
        played = [_drawn(number) for number in range(len(files))]
    for clip in cycle(played):
        yield from islice(clip, SHOT_FRAMES)


def _played(file: Path) -> Iterator[Image]:
    """Yield the pictures of a clip, again and again."""
    while True:
        video = cv2.VideoCapture(str(file))
        there, picture = video.read()
        if not there:
            raise BadInput(f"{file} has no pictures that OpenCV can read")
        while there:
            yield np.asarray(cv2.resize(picture, (_WIDTH, _HEIGHT)), np.uint8)
            there, picture = video.read()


def _drawn(clip: int) -> Iterator[Image]:
    """Yield pictures of a camera that moves along leaves, the same for the same clip."""
    chance = random.Random(f"vld clip {clip}")  # noqa: S311 - no secret
    width, height = _WIDTH + 256, _HEIGHT + 128
    leaves = np.full((height, width, 3), _EARTH, np.uint8)
    for _ in range(_LEAVES * (1 + clip)):
        place = chance.randrange(width), chance.randrange(height)
        size = chance.randint(4, 40), chance.randint(4, 20)
        colour = [chance.randint(20, 120), chance.randint(60, 230), chance.randint(40, 180)]
        cv2.ellipse(leaves, place, size, chance.randrange(180), 0, 360, colour, -1)
    for step in count():
        x, y = 3 * step % 256, step % 128
        yield leaves[y : y + _HEIGHT, x : x + _WIDTH].copy()
