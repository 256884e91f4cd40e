"""Frames: the length of a message in 4 bytes, big-endian, and the message in MessagePack."""

from struct import Struct as Layout

import msgspec

_LENGTH = Layout("!I")
PREFIX_BYTES = _LENGTH.size
"""The size of the length prefix."""
_encoder = msgspec.msgpack.Encoder()


def framed(message: msgspec.Struct) -> bytes:
    body = _encoder.encode(message)
    return _LENGTH.pack(len(body)) + body


class Frames:
    """Divides received bytes into frames.

    >>> from sojourn.spark.wire.processor import Ready
    >>> frames = Frames()
    >>> one = framed(Ready(3))
    >>> list(frames.fed(one[:3])), [len(body) for body in frames.fed(one[3:] + one)]
    ([], [8, 8])
    """

    def __init__(self) -> None:
        self._buffer = bytearray()

    def fed(self, some: bytes | memoryview) -> list[bytes]:
        """Return the bodies of the frames that *some* more bytes complete."""
        buffer = self._buffer
        if buffer:
            buffer += some
            some = memoryview(buffer)
        frames: list[bytes] = []
        start, end = 0, len(some)
        while (begin := start + _LENGTH.size) <= end:
            (length,) = _LENGTH.unpack_from(some, start)
            if begin + length > end:
                break
            start = begin + length
            frames.append(bytes(some[begin:start]))
        if not buffer:  # the usual case: whole frames arrive, and nothing is copied twice
            buffer += some[start:]
        elif start:
            self._buffer = bytearray(some[start:])
        return frames
