"""Creates topics on a broker, and waits until they have leaders."""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka import KafkaException

# the types of the package do not say that it exports both
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from sojourn.errors import BadInput, BrokerFailed

_NAME = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")
# Far more than any topic needs: a larger number is a typing error.
_MOST_PARTITIONS = 10_000
_ANSWER_S = 10.0
_LOOK_S = 0.02


def check_topic(name: str, partitions: int) -> None:
    """Raise `BadInput` if Kafka would reject the name or the number of partitions.

    >>> check_topic("vld.frames", 4)
    """
    if not _NAME.fullmatch(name):
        raise BadInput(
            f"{name!r} is not a topic name; write up to 249 letters, digits, '.', '_', '-'"
        )
    if not 1 <= partitions <= _MOST_PARTITIONS:
        raise BadInput(
            f"topic {name}: {partitions} partitions; write from 1 to {_MOST_PARTITIONS}"
        )


def make_topics(client: AdminClient, partitions: Mapping[str, int]) -> None:
    """Create missing topics, and wait until all partitions have a leader."""
    for name, number in partitions.items():
        check_topic(name, number)
    with creating_topics("see the broker's log"):
        there = partitions_led(client)
        for name, number in partitions.items():
            if there.get(name, number) != number:
                raise BrokerFailed(
                    f"topic {name} has {there[name]} partitions, not {number}",
                    "ask for as many as it has, or choose another name",
                )
        new = [
            NewTopic(name, num_partitions=number, replication_factor=1)
            for name, number in partitions.items()
            if name not in there
        ]
        for made in client.create_topics(new).values() if new else ():
            made.result(_ANSWER_S)
        await_leaders(client, lambda led: partitions.items() <= led.items())


@contextmanager
def creating_topics(way_out: str) -> Iterator[None]:
    """Raise `BrokerFailed` with *way_out* for what Kafka refuses inside."""
    try:
        yield
    except (KafkaException, TimeoutError) as error:
        raise BrokerFailed(f"topics could not be created: {error}", way_out) from error


def await_leaders(
    client: AdminClient,
    enough: Callable[[Mapping[str, int]], bool],
    *,
    patience_s: float = 60.0,
) -> dict[str, int]:
    """Wait until *enough* partitions have a leader; return their number, by topic."""
    until_s = time.monotonic() + patience_s
    while not enough(led := partitions_led(client)):
        if time.monotonic() > until_s:
            raise BrokerFailed(
                f"topics were not ready after {patience_s:g} s", "see the broker's log"
            )
        time.sleep(_LOOK_S)
    return led


def partitions_led(client: AdminClient) -> dict[str, int]:
    """Return the number of partitions with a leader, by topic."""
    return {
        name: sum(partition.leader >= 0 for partition in topic.partitions.values())
        for name, topic in client.list_topics(timeout=_ANSWER_S).topics.items()
    }
