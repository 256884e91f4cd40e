"""What somebody should know of the brokers while an application runs."""

from collections.abc import Iterable, Mapping

__all__ = ["kafka_notices"]


def kafka_notices(
    servers: str,
    *,
    away: bool,
    silent: Iterable[tuple[str, int]],
    grown: Mapping[str, tuple[int, int]],
) -> tuple[str, ...]:
    """Return a sentence for each thing that is wrong; the same one for as long as it is.

    >>> kafka_notices("k:9092", away=False, silent=[("orders", 2)], grown={"orders": (2, 3)})
    ('no broker leads orders[2]; its records wait, ...',
     'orders has 3 partitions, 2 when it was started; ...')
    """
    if away:
        return (f"no broker answers at {servers}; all stands still until one does",)
    return (
        *(
            f"no broker leads {topic}[{partition}]; its records wait, and others are done"
            for topic, partition in sorted(silent)
        ),
        *(
            f"{topic} has {now} partitions, {before} when it was started; the records of new "
            "ones wait until it is started again"
            for topic, (before, now) in sorted(grown.items())
        ),
    )
