"""A broker that is empty again for whoever comes next."""

import time
from contextlib import contextmanager

DEADLINE_S = 60


@contextmanager
def emptied(broker):
    """Remove all topics and groups of *broker* after the block."""
    try:
        yield
    finally:
        client = broker.cluster.client()
        if groups := [each.group_id for each in client.list_consumer_groups().result().valid]:
            for done in client.delete_consumer_groups(groups).values():
                done.exception(DEADLINE_S)  # one whose consumer has just closed stays
        if there := _topics(client):
            for done in client.delete_topics(there).values():
                done.result(DEADLINE_S)
        until_s = time.monotonic() + DEADLINE_S
        while there := _topics(client):
            assert time.monotonic() < until_s, there
            time.sleep(0.05)


def _topics(client):
    return [name for name in client.list_topics(timeout=DEADLINE_S).topics if name[0] != "_"]
