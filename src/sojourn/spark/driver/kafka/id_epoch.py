"""Marks that keep ids of roots unique when offsets repeat.

A topic that is deleted and created again begins at offset 0, and an application that starts
with `--fresh` reads the same offsets again. Their roots must get new ids. The id of a root
therefore contains a mark: the beginning of Kafka's topic id, and the epoch of the state
folder, which changes with every fresh start.
"""

import secrets
from collections.abc import Iterable
from pathlib import Path

from confluent_kafka import KafkaException, TopicCollection, Uuid
from confluent_kafka.admin import AdminClient

from sojourn.errors import BadFile, BrokerFailed
from sojourn.files.durable_file import write_durably

_FILE = "epoch"
_ANSWER_S = 30.0
# Kafka writes a topic id with 22 characters; 8 of them carry 48 bits.
_LETTERS = 8


def state_epoch(folder: Path, *, goes_on: bool) -> str:
    """Return the epoch of the state in *folder*; create a new one unless the run resumes.

    Raise `BadFile` if the epoch of a resumed state cannot be read.
    """
    path = folder / _FILE
    if goes_on:
        try:
            return path.read_text(encoding="ascii")
        except (OSError, ValueError) as error:
            way_out = "restore it, or start without this state (--fresh)"
            raise BadFile(str(path), f"cannot be read: {error}", way_out) from error
    epoch = secrets.token_hex(4)
    write_durably(path, epoch.encode())
    return epoch


def root_marks(client: AdminClient, topics: Iterable[str], epoch: str) -> dict[str, str]:
    """Return the mark in the ids of roots, by topic."""
    asked = client.describe_topics(TopicCollection(list(topics)), request_timeout=_ANSWER_S)
    try:
        found = {name: told.result(_ANSWER_S).topic_id for name, told in asked.items()}
    except (KafkaException, TimeoutError) as error:
        raise BrokerFailed(
            f"topics cannot be described: {error}", "check your permissions (ACLs)"
        ) from error
    return {name: _mark(topic_id, epoch) for name, topic_id in found.items()}


def _mark(topic_id: Uuid, epoch: str) -> str:
    """Return the beginning of a topic id, as Kafka's own tools write it, and the epoch.

    >>> _mark(Uuid(-1, -1), "5f0c9e1a")
    '________-5f0c9e1a'
    """
    # librdkafka has letters in it that are not for names
    written = str(topic_id).replace("+", "-").replace("/", "_")
    return f"{written[:_LETTERS]}-{epoch}"
