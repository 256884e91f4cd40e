"""Sample records of an application's sources, encoded for Kafka."""

from collections.abc import Iterator, Mapping

from sojourn.app.application import App
from sojourn.app.codec import codec_of
from sojourn.app.loading import is_address, load
from sojourn.errors import BadApplication, SojournError
from sojourn.spark.driver.load.offered_load import Gaps, Source
from sojourn.spark.wire.headers import BLOB

__all__ = ["Message", "load_sources", "messages"]

Message = tuple[bytes, dict[str, str | bytes | None]]
"""The value and the headers of a message."""


def load_sources(
    app: App,
    address: str,
    rates: Mapping[str, tuple[tuple[float, float], ...]],
    *,
    gaps: Gaps = "poisson",
    at_once: int = 1,
    most: int | None = None,
) -> tuple[Source, ...]:
    """Return the load on the sources in *rates*, which maps each to points of time and rate.

    Raise `BadApplication` if a source has no samples. The application of a topology file needs
    none.
    """
    stand_in = not is_address(address)
    for name in rates:
        if name not in app.samples and not stand_in:
            raise BadApplication(
                f"sources.{name}",
                "it has no samples",
                f"give app.source samples=, or write to the topic {app.topic(name)} yourself",
            )
    return tuple(
        Source(
            topic=app.topic(name),
            points=points,
            gaps=gaps,
            at_once=at_once,
            records="" if stand_in else f"{address} {name}",
            most=most,
        )
        for name, points in rates.items()
    )


def messages(place: str, seed: int) -> Iterator[Message]:
    """Yield the encoded samples of a source, with the address `package.module:app source`.

    Raise `BadApplication` if the samples function raises, and `BadRecord` if a sample does not
    fit the schema of the source.
    """
    address, _, name = place.rpartition(" ")
    app = load(address)
    encode = codec_of(app.sources[name]).encode
    try:
        for record in app.samples[name](seed):
            payload, blobs = encode(record)
            yield payload, {BLOB + column: value for column, value in blobs.items()}
    except SojournError:
        raise
    except Exception as error:
        problem = f"making samples failed: {type(error).__name__}: {error}"
        raise BadApplication(f"sources.{name}.samples", problem, "correct it") from error
