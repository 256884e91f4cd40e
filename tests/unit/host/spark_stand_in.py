"""A world around a ledger that can fail between any two steps: Spark, relays, a host, a disk.

Every step of a history is one method of `World`; none does two things that could be torn
apart by a crash.
"""

from collections import deque
from itertools import count
from zlib import crc32

from sojourn.host.cut import Cut, CutId, Leaving, OpenRecord
from sojourn.host.ledger import (
    Arrival,
    FinishRelay,
    HandOver,
    Ledger,
    RefuseRelay,
    Restore,
    SaveCut,
)

PARTITIONS = [("lines", 0), ("lines", 1), ("prices", 0)]
ENTRY = {"lines": ("split",), "prices": ("merge",)}


def work(operator, name):
    """Return what a record sends on, as operator and name, and its results: a loop, a split."""
    drawn, depth = crc32(f"{name} {operator}".encode()), name.count(".")
    children = {
        "split": [("merge", n) for n in range(drawn % 3)] + [("score", 3)],
        "merge": [("split", 0)] if drawn % 2 and depth < 4 else [],
        "score": [],
    }[operator]
    number = {"split": 0, "merge": 1, "score": drawn % 3}[operator]
    sent = [(to, f"{name}.{operator}{place}") for to, place in children]
    return sent, [f"{name}.{operator}!{place}" for place in range(number)]


def expected(roots):
    """Return all records and all results of *roots*, by what each is called."""
    left = [(to, name) for topic, name in roots for to in ENTRY[topic]]
    records, results = [], []
    while left:
        operator, name = left.pop()
        records.append(f"{name} at {operator}")
        sent, made = work(operator, name)
        left += sent
        results += made
    return sorted(records), sorted(results)


class Disk:
    """What outlives everything: cuts with the state they go with, and Spark's own logs."""

    def __init__(self):
        nothing = Cut(id=CutId(-1, 0), taken={})
        self.cuts, self.states = {nothing.id: nothing}, {nothing.id: {}}
        self.ends = {-1: dict.fromkeys(PARTITIONS, 0)}
        self.committed, self.attempts, self.final = -1, 0, set()

    def save(self, cut, state):
        self.cuts[cut.id], self.states[cut.id] = cut, state

    def last(self, batch):
        return max(cut for cut in self.cuts if cut.batch == batch)

    def load(self, cut):
        return self.cuts[cut]


class Host:
    """A life of the host: its ledger, its state, and what is on its way to the disk."""

    def __init__(self, disk):
        self.disk, self.ledger, self.state = disk, Ledger(disk), {}
        self.relays, self.saving, self.on_disk = {}, deque(), deque()

    def do(self, instructions):
        for instruction in instructions:
            match instruction:
                case HandOver(relay, leaving, floor):
                    assert leaving.result not in self.disk.final
                    self.relays[relay].handed.append(leaving.result)
                    self.relays[relay].inbox.append(("result", leaving, floor))
                case SaveCut(cut):
                    self.saving.append((cut, dict(self.state)))
                case FinishRelay(relay):
                    self.relays[relay].inbox.append(("finish",))
                case RefuseRelay(relay):
                    self.relays[relay].inbox.append(("refuse",))
                case Restore(cut):
                    self.state = dict(self.disk.states[cut.id])

    def heard(self, relay, message):
        match message:
            case ("hello", arrival):
                self.relays[relay.number] = relay
                self.do(self.ledger.relay_came(relay.number, arrival))
            case ("row", offset, name):
                root = self.ledger.takes(relay.number, offset)
                for operator in ENTRY[root.partition[0]] if root else ():
                    self.ledger.entered(OpenRecord(root, operator, name))
            case ("end",):
                self.do(self.ledger.relay_ended(relay.number))

    def work(self, number):
        """Do one of the records that are open: which one is for the history to say."""
        place = list(self.ledger.open)[number]
        record = self.ledger.open[place]
        done = f"{record.record} at {record.operator}"
        self.state[done] = self.state.get(done, 0) + 1
        sent, results = work(record.operator, record.record)
        records = [OpenRecord(record.root, to, name) for to, name in sent]
        _, then = self.ledger.done(place, records, [Leaving(record.root, r) for r in results])
        self.do(then)


class Relay:
    """A task of Spark: it reads a partition, hands over rows, and writes what it gets."""

    numbers = count(1)

    def __init__(self, arrival, position):
        self.number, self.host, self.position = next(self.numbers), None, position
        self.partition, self.state = arrival.partition, "reads"
        self.outbox, self.inbox = deque([("hello", arrival)]), deque()
        self.handed, self.unwritten = [], deque()


class World:
    """Spark, its relays and a host; `settle` lets all of it run until nothing is left."""

    def __init__(self):
        self.disk, self.topics = Disk(), {partition: [] for partition in PARTITIONS}
        self.sink, self.names = [], count()
        self.host, self.attempt, self.batch, self.relays = None, 0, 0, []
        self.fixed_ends, self.zombies, self.late = None, [], deque()

    # -- what happens outside ----------------------------------------------------------------

    def produce(self, number):
        partition = PARTITIONS[number % len(PARTITIONS)]
        self.topics[partition].append(f"{partition[0]}-{next(self.names)}")

    # -- steps of Spark ----------------------------------------------------------------------

    def start(self, number=0):
        """Start the query again if it does not run, or its next batch."""
        if self.relays:
            return
        if self.attempt == 0:
            self.disk.attempts += 1
            self.attempt = self.disk.attempts
        self.batch = self.disk.committed + 1
        # it may run a batch again to where it once ended, or to anywhere else
        self.fixed_ends = self.disk.ends.get(self.batch) if number % 2 else None
        arrival = {"attempt": self.attempt, "batch": self.batch, "relays": len(PARTITIONS)}
        self.relays = [
            Relay(
                Arrival(**arrival, partition=partition),
                self.disk.ends[self.disk.committed][partition],
            )
            for partition in PARTITIONS
        ]

    def any_relay(self, number):
        every = [*self.relays, *self.zombies]
        return every[number % len(every)] if every else None

    def may_read(self, relay):
        rows = self.topics[relay.partition]
        end = self.fixed_ends[relay.partition] if self.fixed_ends else len(rows)
        return relay.state == "reads" and relay.position < end

    def read(self, number):
        relay = self.any_relay(number)
        row = self.topics[relay.partition][relay.position]
        relay.outbox.append(("row", relay.position, row))
        relay.position += 1

    def may_end(self, relay):
        """Tell whether the input of a relay may end: it has read what it must."""
        return relay.state == "reads" and (
            self.fixed_ends is None or relay.position >= self.fixed_ends[relay.partition]
        )

    def end(self, number):
        relay = self.any_relay(number)
        relay.state = "ended"
        relay.outbox.append(("end",))

    def commit_ends(self, _number=0):
        self.disk.ends[self.batch] = {r.partition: r.position for r in self.relays}

    def commit(self, _number=0):
        self.disk.final |= {result for relay in self.relays for result in relay.handed}
        self.disk.committed, self.relays = self.batch, []

    def write(self, number):
        """Write one of the results that a relay was handed."""
        self.sink.append(self.any_relay(number).unwritten.popleft())

    # -- steps between relays and the host ---------------------------------------------------

    def may_say(self, relay):
        return bool(relay.outbox) and relay.host in (None, self.host) and self.host is not None

    def say(self, number):
        """Let a relay's next message arrive at the host; the first one connects it."""
        relay = self.any_relay(number)
        relay.host = self.host
        self.host.heard(relay, relay.outbox.popleft())

    def may_notice(self, relay):
        return relay.state != "done" and relay.host not in (None, self.host)

    def notice(self, number):
        """Let a relay see that its host is gone."""
        self.fail(self.any_relay(number))

    def hear(self, number):
        """Let a relay hear the next of what its host says."""
        relay = self.any_relay(number)
        match relay.inbox.popleft():
            case ("result", leaving, floor):
                relay.unwritten.append((leaving, floor))
            case ("finish",):
                self.sink.extend(relay.unwritten)
                relay.unwritten.clear()
                relay.state = "done"
                self.host_loses(relay)
            case ("refuse",):
                self.fail(relay)

    def host_loses(self, relay):
        if self.host is not None and relay.host is self.host:
            self.host.ledger.relay_left(relay.number)

    def fail(self, relay):
        """Fail a task: Spark ends the run, and the other tasks a moment later."""
        self.host_loses(relay)
        relay.state = "dead"
        if relay in self.zombies:
            self.zombies.remove(relay)
        elif relay in self.relays:
            self.zombies += [other for other in self.relays if other.state != "dead"]
            self.relays, self.attempt = [], 0

    # -- steps of the host -------------------------------------------------------------------

    def launch(self, _number=0):
        self.host = Host(self.disk)

    def work(self, number):
        self.host.work(number)

    def save(self, _number=0):
        cut, state = self.host.saving.popleft()
        self.disk.save(cut, state)
        self.host.on_disk.append(cut.id)

    def saved(self, _number=0):
        self.host.do(self.host.ledger.saved(self.host.on_disk.popleft()))

    # -- faults ------------------------------------------------------------------------------

    def kill_worker(self, number):
        relay = self.any_relay(number)
        if relay is not None:
            self.fail(relay)

    def kill_host(self, _number=0):
        self.host = None

    def kill_driver(self, number):
        """Kill everything; what the host was writing may still get to the disk, much later."""
        if number % 2 and self.host is not None:
            self.late += self.host.saving
        self.host, self.relays, self.zombies, self.attempt = None, [], [], 0

    def save_late(self, _number=0):
        self.disk.save(*self.late.popleft())

    # -- histories ---------------------------------------------------------------------------

    def steps(self):
        """Return what may happen next where nothing fails."""
        relays = list(enumerate([*self.relays, *self.zombies]))
        able = [(self.say, n) for n, relay in relays if self.may_say(relay)]
        able += [(self.notice, n) for n, relay in relays if self.may_notice(relay)]
        able += [(self.hear, n) for n, relay in relays if relay.inbox]
        able += [(self.write, n) for n, relay in relays if relay.unwritten]
        able += [(self.read, n) for n, relay in relays if self.may_read(relay)]
        if self.host is None:
            able.append((self.launch, 0))
        else:
            able += [(self.work, place) for place in range(len(self.host.ledger.open))]
            able += [(self.save, 0)] * bool(self.host.saving)
            able += [(self.saved, 0)] * bool(self.host.on_disk)
        able += [(self.save_late, 0)] * bool(self.late)
        if not self.relays:
            able.append((self.start, 0))
        elif all(relay.state == "done" for relay in self.relays):
            ends = {relay.partition: relay.position for relay in self.relays}
            written = self.disk.ends.get(self.batch) == ends
            able.append((self.commit if written else self.commit_ends, 0))
        return able

    def ends(self):
        """Return the ends of input that relays may come to: of those, when is for Spark."""
        relays = enumerate([*self.relays, *self.zombies])
        return [(self.end, n) for n, relay in relays if self.may_end(relay)]

    def run(self, number, random):
        """Let so many things happen, in any order; input ends now and then."""
        for _ in range(number):
            able, ends = self.steps(), self.ends()
            if ends and (not able or random.random() < 0.1):
                able = ends
            step, argument = random.choice(able)
            step(argument)

    def settle(self, random):
        """Let everything run, without faults, until nothing is left to do."""
        for _ in range(100_000):
            if self.is_quiet():
                return
            self.run(1, random)
        raise AssertionError("something waits for ever")

    def is_quiet(self):
        ends = self.disk.ends[self.disk.committed]
        cut = self.disk.load(self.disk.last(self.disk.committed))
        return (
            all(ends[partition] == len(rows) for partition, rows in self.topics.items())
            and not self.relays
            and not cut.open
        )
