"""What arrived, against what should have: worked out from the input by plain Python."""

from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field

from confluent_kafka import Consumer, TopicPartition

_ANSWER_S = 30.0


@dataclass(frozen=True)
class Outcome:
    """What is wrong with the results: how often each is missing, too many, or unheard of.

    *disordered* are the keys of which results came in another order than they should have.
    """

    expected: int
    lost: Counter = field(default_factory=Counter)
    twice: Counter = field(default_factory=Counter)
    wrong: Counter = field(default_factory=Counter)
    disordered: frozenset = frozenset()

    @property
    def exact(self):
        """Whether each result is there once, and no other."""
        return not (self.lost or self.twice or self.wrong)

    def __str__(self):
        return (
            f"{self.expected} expected, {self.lost.total()} lost, {self.twice.total()} twice, "
            f"{self.wrong.total()} wrong, {len(self.disordered)} keys out of order"
        )


def compare(offline, arrived, *, key=None):
    """Return how *arrived* differs from what was worked out *offline*.

    With *key*, the first arrivals of what has the same key are expected in the order of
    *offline*.

    >>> str(compare("abc", "axbb"))
    '3 expected, 1 lost, 1 twice, 1 wrong, 0 keys out of order'
    >>> compare(["a1", "b1", "a2"], ["a2", "a1", "b1", "a2"], key=lambda it: it[0]).disordered
    frozenset({'a'})
    """
    offline, arrived = list(offline), list(arrived)
    should, did = Counter(offline), Counter(arrived)
    more = did - should
    disordered = set()
    if key is not None:
        came = _by_key([result for result in dict.fromkeys(arrived) if result in should], key)
        due = _by_key([result for result in dict.fromkeys(offline) if result in did], key)
        disordered = {name for name, results in due.items() if came[name] != results}
    return Outcome(
        expected=len(offline),
        lost=should - did,
        twice=Counter({result: n for result, n in more.items() if result in should}),
        wrong=Counter({result: n for result, n in more.items() if result not in should}),
        disordered=frozenset(disordered),
    )


def _by_key(results, key):
    found = {}
    for result in results:
        found.setdefault(key(result), []).append(result)
    return found


def written(servers, topic):
    """Return all payloads of a topic as it is now, partition by partition."""
    return [payload for _, payload in written_at(servers, topic)]


def written_at(servers, topic):
    """Return the same, each with the time when it was written, in seconds since 1970."""
    found = []
    with closing(_reader(servers)) as reader:
        for place, first, end in _places(reader, topic):
            at, place.offset = first, first
            reader.assign([place])
            while at < end:
                for message in reader.consume(min(1000, end - at), 1.0):
                    if message.error() is None:
                        found.append((1e-3 * message.timestamp()[1], message.value()))
                        at = message.offset() + 1
    return found


def length(servers, topic):
    """Return how many records a topic has now, of all its partitions."""
    with closing(_reader(servers)) as reader:
        return sum(end - first for _, first, end in _places(reader, topic))


def _reader(servers):
    return Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "ledger",
            "enable.auto.commit": "false",
            "log_level": 0,
        }
    )


def _places(reader, topic):
    """Yield the partitions of a topic, each with its first offset and its end."""
    for part in reader.list_topics(topic, timeout=_ANSWER_S).topics[topic].partitions:
        place = TopicPartition(topic, part)
        yield place, *reader.get_watermark_offsets(place, timeout=_ANSWER_S)
