"""Comparison of the records in topics with the results that plain Python computes."""

from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field

from confluent_kafka import Consumer, TopicPartition

_ANSWER_S = 30.0


@dataclass(frozen=True)
class Outcome:
    """The differences between actual and expected results, each with its count."""

    expected: int
    """The number of expected results."""
    lost: Counter = field(default_factory=Counter)
    twice: Counter = field(default_factory=Counter)
    """Expected results that occur too often."""
    wrong: Counter = field(default_factory=Counter)
    """Results that were not expected at all."""
    disordered: frozenset = frozenset()
    """Keys whose results are out of order."""

    @property
    def exact(self):
        """Whether exactly the expected results arrived; their order does not matter."""
        return not (self.lost or self.twice or self.wrong)

    def __str__(self):
        return (
            f"{self.expected} expected, {self.lost.total()} lost, {self.twice.total()} twice, "
            f"{self.wrong.total()} wrong, {len(self.disordered)} keys out of order"
        )


def compare(offline, arrived, *, key=None):
    """Compare *arrived* with the results that were computed *offline*.

    With *key*, results with the same key must arrive in the order of *offline*; repetitions do
    not count.

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
    """Return all payloads that a topic has now, partition by partition."""
    return [payload for _, payload in written_at(servers, topic)]


def written_at(servers, topic):
    """Return the same with the timestamp of each message, in seconds since 1970."""
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
    """Return the number of records in all partitions of a topic."""
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
    """Yield the partitions of a topic with their first and end offsets."""
    for part in reader.list_topics(topic, timeout=_ANSWER_S).topics[topic].partitions:
        place = TopicPartition(topic, part)
        yield place, *reader.get_watermark_offsets(place, timeout=_ANSWER_S)
