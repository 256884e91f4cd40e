"""What somebody should know of the brokers while an application runs."""

from collections.abc import Iterable, Mapping

__all__ = ["kafka_notices"]


def kafka_notices(
    servers: str,
    *,
    away: bool,
    silent: Iterable[tuple[str, int]] = (),
    grown: Mapping[str, tuple[int, int]] | None = None,
    slots: int = 0,
    needed: int = 0,
) -> tuple[str, ...]:
    """Return a sentence for each thing that is new or wrong, the same for as long as it is.

    Partitions are read from the next batch on, if Spark has *slots* for all that are *needed*.

    >>> kafka_notices("k:9092", away=False, silent=[("orders", 2)])
    ('orders[2] has no leader; its records wait, other partitions are read',)
    >>> kafka_notices("k:9092", away=False, grown={"orders": (2, 3)}, slots=8, needed=4)
    ('orders has 3 partitions, 2 at the start; new ones are read from the next batch on',)
    """
    if away:
        return (f"no broker answers at {servers}; the application waits until one does",)
    then = (
        "new ones are read from the next batch on"
        if needed <= slots
        else f"Spark has {slots} slots, and {needed} are needed: restart to read all of them"
    )
    return (
        *(
            f"{topic}[{partition}] has no leader; its records wait, other partitions are read"
            for topic, partition in sorted(silent)
        ),
        *(
            f"{topic} has {now} partitions, {before} at the start; {then}"
            for topic, (before, now) in sorted((grown or {}).items())
        ),
    )
