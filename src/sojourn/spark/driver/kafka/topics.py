"""Creates topics on a broker, and waits until they have leaders."""

import re
import time
from collections.abc import Mapping

from confluent_kafka import KafkaException

# the types of the package do not say that it exports both
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from sojourn.errors import BadInput, BrokerFailed

__all__ = ["check_topic", "cluster_of", "make_topics", "partitions_led"]

_NAME = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")
# Far more than any topic needs: a larger number is a typing error.
_MOST_PARTITIONS = 10_000
_ANSWER_S = 10.0
_PATIENCE_S = 60.0
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


def cluster_of(client: AdminClient) -> str | None:
    """Return the id of the cluster that *client* reaches; None while it is not ready."""
    try:
        told = client.list_topics(timeout=_ANSWER_S)
    except KafkaException:
        return None
    return told.cluster_id if told.brokers else None


def make_topics(client: AdminClient, partitions: Mapping[str, int]) -> None:
    """Create missing topics, and wait until all partitions have a leader."""
    for name, number in partitions.items():
        check_topic(name, number)
    try:
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
        deadline_s = time.monotonic() + _PATIENCE_S
        while not partitions.items() <= partitions_led(client).items():
            if time.monotonic() > deadline_s:
                raise BrokerFailed(
                    f"topics were not ready after {_PATIENCE_S:g} s", "see the broker's log"
                )
            time.sleep(_LOOK_S)
    except (KafkaException, TimeoutError) as error:
        problem = f"topics could not be created: {error}"
        raise BrokerFailed(problem, "see the broker's log") from error


def partitions_led(client: AdminClient) -> dict[str, int]:
    """Return the number of partitions with a leader, by topic."""
    return {
        name: sum(partition.leader >= 0 for partition in topic.partitions.values())
        for name, topic in client.list_topics(timeout=_ANSWER_S).topics.items()
    }
