"""What records hold."""

from typing import TypeAlias

Box: TypeAlias = tuple[int, int, int, int]
"""Left, top, width and height in pixels."""
Candidate: TypeAlias = tuple[str, int, Box]
"""A logo that may be there, the features that say so, and where."""
Detection: TypeAlias = tuple[str, str, int, Box]
"""The id of a frame, and a candidate with enough features."""
FrameFeatures: TypeAlias = tuple[str, int, int, bytes, bytes]
"""The id of a frame, its width and height, points and descriptors of its features."""
