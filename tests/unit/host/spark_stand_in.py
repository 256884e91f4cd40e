"""A world around a part that can fail between any two steps: Spark, relays, a host, a disk.

Every step of a history is one method of `World`; none does two things that could be torn
apart by a crash.
"""

from collections import Counter, deque
from itertools import count
from zlib import crc32

import msgspec

from sojourn.app.operator import OnError
from sojourn.errors import EngineError
from sojourn.host.batch.cut import Cut, CutId
from sojourn.host.batch.host_log import HostLog
from sojourn.host.batch.instructions import (
    Arrival,
    FinishRelay,
    HandOver,
    RefuseRelay,
    SaveCut,
)
from sojourn.host.batch.ledger import Ledger
from sojourn.host.batch.log_entries import Did
from sojourn.host.batch.relay_messages import DeadLetter, Row
from sojourn.host.batch.repetitions import Input, Provenance
from sojourn.host.batch.spill import Spill
from sojourn.host.desk.admission import GrantRelay, Limits
from sojourn.host.desk.instructions import Give, KillProcessor, StartProcessor
from sojourn.host.desk.operator_desk import OperatorDesk
from sojourn.host.desk.part_desk import PartDesk
from sojourn.host.desk.part_graph import PartGraph
from sojourn.host.desk.part_instructions import AtOperator
from sojourn.host.process.messages import OutputRecord, Record, Result
from sojourn.host.state.keyed_state import KeyedState, MergeState
from sojourn.host.state.reminders import reminder_name
from sojourn.plan import HERE

PARTITIONS = [("lines", 0), ("lines", 1), ("prices", 0)]
GRAPH = PartGraph(
    readers={
        "lines": ("split",),
        "prices": ("merge", "learn"),
        "words": ("merge",),
        "again": ("split",),
        "scored": ("score",),
    },
    emits={"split": ("words", "scored"), "merge": ("again",), "score": ("scores",)},
    leaving=frozenset(["words", "scores"]),
    everyone=frozenset([("learn", "prices")]),
    stateful=frozenset(["score", "merge"]),
)
KEYS = ("a", "b", "c")
REMINDERS = "score@reminders"
EXPIRING = "merge"
TTL_S = 1000.0
OPERATORS = ("split", "merge", "score", "learn")
NODES = (HERE, "node-1", "node-2")
# So little that operators spill to disk all the time.
LIMITS = Limits(records=4, spilled=20)
# So much that many wait for one processor.
ROOMY = Limits(records=400)
# To another node and back, many times as long as a service.
SERVICE_S, WAY_S = 0.01, 0.05


def work(operator, name):
    """Return the streams to which a record sends others: a split, a loop, a stream that leaves.

    None if the function raises.
    """
    drawn, depth = crc32(f"{name} {operator}".encode()), name.count(".")
    if drawn % 11 == 0:
        return None
    return {
        "split": ["words"] * (drawn % 3) + ["scored"],
        "merge": ["again"] if drawn % 2 and depth < 6 else [],
        "score": ["scores"] * (drawn % 3),
        "learn": [],
    }[operator]


def key_of(parent, place):
    """Return the key by which what *parent* sends on is scored, or merged."""
    return KEYS[crc32(f"{parent} {place}".encode()) % len(KEYS)]


def reminders(name):
    """Return what a record asks for when it is scored; a reminder may ask for others."""
    drawn = crc32(f"remind {name}".encode())
    return [(drawn % 700, name)] * (drawn % 5 % 3)


def scored(state, name):
    """Return what a key keeps once *name* is scored: how many were, and a sum over them."""
    number, total = map(int, state.split()) if state else (0, 0)
    return f"{number + 1} {(total + crc32(name.encode())) % 2**32}".encode()


def expected_states(records):
    """Return the state of each key, once *records*, all that were to do, are done."""
    states = {}
    keys = {}
    for record in records:
        name, _, operator = record.partition(" at ")
        if operator == "score" and not name.startswith(REMINDERS):
            parent, _, place = name.rpartition(".")
            keys[name] = key_of(parent.removesuffix(".split"), int(place))
    left = list(keys)
    while left:
        name = left.pop()
        if work("score", name) is not None:
            states[keys[name]] = scored(states.get(keys[name], b""), name)
            for asked in asked_by(name):
                keys[asked] = keys[name]
                left.append(asked)
    return states


def asked_by(name):
    """Return the ids of the reminders that a record asks for."""
    return [reminder_name(REMINDERS, name, number) for number in range(len(reminders(name)))]


def expected(roots):
    """Return all records that operators have to do, and all results, of *roots*."""
    left = [(reader, name) for stream, name in roots for reader in GRAPH.readers[stream]]
    records, results = [], []
    while left:
        operator, name = left.pop()
        records.append(f"{name} at {operator}")
        streams = work(operator, name)
        if streams is None:
            results.append(f"{name} at {operator}: dead")
        elif operator == "score":
            left += [("score", asked) for asked in asked_by(name)]
        for place, stream in enumerate(streams or ()):
            child = f"{name}.{operator}.{place}"
            left += [(reader, child) for reader in GRAPH.readers.get(stream, ())]
            results += [child] if stream in GRAPH.leaving else []
    return sorted(records), sorted(results)


def called(leaving):
    """Return what a result is called."""
    match leaving.result:
        case DeadLetter(operator, record):
            return f"{record.name} at {operator}: dead"
        case record:
            return record.name


class Died(Exception):
    """A host was killed in the middle of a step."""


class Folder:
    """The files of a log, by number."""

    def __init__(self):
        self.files = {}

    def numbers(self):
        return sorted(self.files)

    def create(self, number, content):
        if number in self.files:
            return False
        self.files[number] = content
        return True

    def append(self, number, content):
        if number in self.files:  # else it is written to a file without a name
            self.files[number] += content

    def read(self, number):
        return self.files.get(number, b"")

    def remove(self, number):
        self.files.pop(number, None)


_encode, _decode = msgspec.msgpack.encode, msgspec.msgpack.Decoder(Cut).decode
_NOWHERE = object()  # where a connection leads that was cut off


class Disk:
    """What outlives everything: cuts with the state they go with, and Spark's own logs.

    It can be the store of one ledger, which then finds nothing in its log.
    """

    log_is_own = True

    def __init__(self):
        nothing = Cut(id=CutId(-1, 0), taken={})
        self.cuts, self.states = {nothing.id: nothing}, {nothing.id: {}}
        self.ends = {-1: dict.fromkeys(PARTITIONS, 0)}
        self.committed, self.attempts, self.final = -1, 0, set()
        self.segments, self.names = {}, count()
        self.deltas, self.store, self.merged_upto = {}, {}, -1
        self.log = Folder()

    def save(self, cut, changed, state):
        self.deltas[cut.id] = changed
        self.cuts[cut.id], self.states[cut.id] = cut, state

    def merged(self):
        return self.merged_upto

    def look_up(self, operator, key):
        return self.store.get((operator, key), b"")

    def ordered(self, operator, start, end, most):
        found = [
            (key, state)
            for (of, key), state in sorted(self.store.items())
            if of == operator and start <= key < end and state
        ]
        return found[:most]

    def read_delta(self, cut):
        if cut not in self.deltas:
            raise FileNotFoundError(cut)
        return self.deltas[cut]

    def merge(self, merge):
        for cut, delta in merge.cuts:
            if cut.batch > self.merged_upto:
                for operator, states in delta.items():
                    self.store |= {(operator, key): state for key, state in states.items()}
        self.merged_upto = max(self.merged_upto, merge.upto)
        self.deltas = {
            cut: delta for cut, delta in self.deltas.items() if cut.batch > self.merged_upto
        }

    def recover(self, _base):
        return []

    def last(self, batch):
        return max(cut for cut in self.cuts if cut.batch == batch)

    def load(self, cut):
        """Return a cut as it is read from a file: what becomes of it is not in the file."""
        return _decode(_encode(self.cuts[cut]))

    def write_segment(self, batch, records):
        name = f"{batch}-{next(self.names)}"
        self.segments[name] = tuple(records)
        return name

    def read_segment(self, name):
        if name not in self.segments:
            raise EngineError(f"{name} is gone")
        return self.segments[name]

    def drop_segments(self, batch, names):
        self.segments = {
            name: records
            for name, records in self.segments.items()
            if name in names or int(name.partition("-")[0]) >= batch
        }


class Store:
    """The disk, with a host's own way to the log."""

    def __init__(self, disk):
        self.disk, self.log = disk, HostLog(disk.log, "layout")
        self.recover, self.logged = self.log.recover, self.log.since

    @property
    def log_is_own(self):
        return self.log.is_own

    def __getattr__(self, name):
        return getattr(self.disk, name)


class CountingLedger(Ledger):
    """A ledger that counts how often each record was done at each operator."""

    def __init__(self, store):
        reminded = {"score": REMINDERS, EXPIRING: f"{EXPIRING}@reminders"}
        super().__init__(store, Spill(store, most=1), most_handed=4, reminded=reminded)
        self.counts, self.replayed = {}, 0

    def done(self, place, results):
        done = self.open[place]
        self._count(done.operator, done.record.name)
        return super().done(place, results)

    def _recovered(self, base):
        self.counts = dict(self._store.states[base])
        return super()._recovered(base)

    def _replay(self, entry, *more):
        self.replayed += 1
        if isinstance(entry, Did):
            self._count(entry.operator, entry.name)
        super()._replay(entry, *more)

    def _count(self, operator, record):
        name = f"{record} at {operator}"
        self.counts[name] = self.counts.get(name, 0) + 1

    def comes_of(self, cut):
        """Return whether this memory goes on from a cut."""
        return cut in self._memory


class Host:
    """A life of the host: operators, their processors, and what is on its way to the disk.

    Where they are *away*, each operator begins with one processor on another node.
    """

    def __init__(self, disk, wall, *, away=False):
        self.disk, self.store, self.dies = disk, Store(disk), None
        self.drained = False
        self.ledger = CountingLedger(self.store)
        on_error = OnError(retries=1, then="dead_letter")
        desks = {name: OperatorDesk(on_error=on_error) for name in OPERATORS}
        self.part = PartDesk(
            GRAPH,
            desks,
            self.ledger,
            limits=ROOMY if away else LIMITS,
            ttl_s={EXPIRING: TTL_S},
            clock=wall,
        )
        self.relays, self.saving, self.on_disk = {}, deque(), deque()
        self.starting, self.busy, self.now_s = [], {}, 0.0
        self.lent, self.node_of, self.nodes = {}, {}, set()
        self.hit = Counter()
        self.asking, self.merging, self.merged = deque(), deque(), deque()
        if away:
            self.node(0)
        for name in OPERATORS:
            self.do(self.part.placed(name, {NODES[1]: 1} if away else {HERE: 2}, 0.0))

    def do(self, instructions):
        self.log(self.ledger.unlogged())
        for instruction in instructions:
            match instruction:
                case HandOver(relay, leaving, floor):
                    assert called(leaving) not in self.disk.final
                    self.relays[relay].handed.append(called(leaving))
                    self.relays[relay].inbox.append(("result", leaving, floor))
                case SaveCut(cut, changed):
                    self.saving.append((cut, changed, dict(self.ledger.counts)))
                case MergeState():
                    self.merging.append(instruction)
                case FinishRelay(relay):
                    self.relays[relay].inbox.append(("finish",))
                case RefuseRelay(relay):
                    self.relays[relay].inbox.append(("refuse",))
                case GrantRelay(relay, number):
                    self.relays[relay].inbox.append(("credit", number))
                case AtOperator(operator, then):
                    self.do_at(operator, then)

    def log(self, entries):
        """Write to the log; a host that is killed then has written it, or not quite."""
        if self.dies is None:
            self.store.log.append(entries)
            return
        before = dict(self.disk.log.files)
        if self.dies:
            self.store.log.append(entries)
        for number, content in self.disk.log.files.items():
            if self.dies == 1 and len(content) > len(before.get(number, content)):
                self.disk.log.files[number] = content[:-1]
        raise Died

    def do_at(self, operator, instruction):
        match instruction:
            case StartProcessor(number, node):
                assert node == HERE or node in self.nodes
                self.node_of[operator, number] = node
                self.starting.append((operator, number))
            case Give(number, records, states=states, ahead=ahead):
                processor = operator, number
                assert ahead == (processor in self.busy)
                self.busy.setdefault(processor, []).extend(records)
                before = self.lent[processor] if ahead else {}
                self.lent[processor] = {**before, **(states or {})}
            case KillProcessor(number):
                self.busy.pop((operator, number), None)

    def heard(self, relay, message):
        match message:
            case ("hello", arrival):
                self.relays[relay.number] = relay
                self.do(self.part.relay_came(relay.number, arrival, self.now_s))
                if self.ledger.knows(relay.number):
                    self.asking.append(arrival)
            case ("row", offset, (name, provenance)):
                record = Record(name, b"", relay.partition[0], root=name)
                keys = {"merge": key_of(name, 0)}
                row = Row(relay.partition, offset, record, keys, provenance=provenance)
                self.do(self.part.rows_came(relay.number, [row], self.now_s))
            case ("end",):
                self.do(self.part.relay_ended(relay.number))

    def told_tasks(self, _number):
        """Let the host hear how many tasks a batch has."""
        arrival = self.asking.popleft()
        known = arrival.attempt, arrival.batch, len(PARTITIONS)
        self.do(self.part.relays_are(*known))

    def ready(self, number):
        """Let a processor be ready."""
        operator, processor = self.starting.pop(number)
        self.do(self.part.processor_ready(operator, processor, self.now_s))

    def work(self, number):
        """Let a processor do the next of what it was given."""
        operator, processor = list(self.busy)[number]
        self.now_s += SERVICE_S + WAY_S
        record = self.busy[operator, processor].pop(0)
        if not self.busy[operator, processor]:
            del self.busy[operator, processor]
        streams = work(operator, record.name)
        error = "ValueError: no" if streams is None else ""
        state, asked = None, []
        if operator in GRAPH.stateful and not error:
            lent = self.lent[operator, processor]
            state = lent[record.key] = scored(lent[record.key], record.name)
        if operator == "score" and not error:
            asked = reminders(record.name)
        outputs = [
            OutputRecord(stream, (state or b"") * (operator == "score"), keys=_keys(record, at))
            for at, stream in enumerate(streams or ())
        ]
        result = Result(outputs, error, took_s=SERVICE_S, state=state, reminders=asked)
        self.do(self.part.processor_done(operator, processor, [result], self.now_s))

    def kill_processor(self, number):
        if self.busy:
            operator, processor = list(self.busy)[number % len(self.busy)]
            records = {(operator, record.name) for record in self.busy[operator, processor]}
            if any(self.hit[each] == 2 for each in records):
                return  # a record that is hit a third time is a dead letter
            self.hit.update(records)
            del self.busy[operator, processor]
            self.do(self.part.processor_died(operator, processor, "was killed", self.now_s))

    def rescale(self, number):
        """Place an operator on one or two nodes, be they there or not."""
        operator = OPERATORS[number % len(OPERATORS)]
        on = {NODES[number % 3]: 1 + number % 2, NODES[number % 5 % 3]: 1}
        self.do(self.part.placed(operator, on, self.now_s))

    def node(self, number):
        """Let a node come, or go with all that is on it."""
        node = NODES[1 + number % 2]
        if node not in self.nodes:
            self.nodes.add(node)
            self.do(self.part.node_came(node, self.now_s))
            return
        self.nodes.discard(node)
        there = {processor for processor, on in self.node_of.items() if on == node}
        self.starting = [processor for processor in self.starting if processor not in there]
        self.busy = {name: jobs for name, jobs in self.busy.items() if name not in there}
        self.do(self.part.node_left(node, self.now_s))

    def time_passes(self, _number=0):
        self.now_s += 100.0
        self.do(self.part.time_passed(self.now_s))


def _keys(record, place):
    key = key_of(record.name, place)
    return {"score": key, "merge": key}


class Relay:
    """A task of Spark: it reads a partition, hands over rows, and writes what it gets."""

    numbers = count(1)

    def __init__(self, arrival, partition, position):
        self.number, self.host, self.position = next(self.numbers), None, position
        self.partition, self.state = partition, "reads"
        self.outbox, self.inbox = deque([("hello", arrival)]), deque()
        self.handed, self.unwritten, self.credit = [], deque(), 0


class Upstream:
    """Another part, which writes what this one reads, and repeats what was not committed."""

    def __init__(self):
        self.written, self.floor = 0, 0

    def writes(self, number):
        """Return what is written next, after a commit, a crash, or neither."""
        again = []
        match number % 4:
            case 1:
                self.floor = self.written
            case 2 | 3:
                again = [self._row(offset) for offset in range(self.floor, self.written)]
        self.written += 1
        return [*again, self._row(self.written - 1)]

    def _row(self, offset):
        entered = Input(topic="orders@m", partition=0, offset=offset, floor=self.floor)
        provenance = Provenance(
            identity=f"prices-{offset}", root=entered.place, entered=entered
        )
        return f"prices-{offset}", provenance


class World:
    """Spark, its relays and a host; `settle` lets all of it run until nothing is left."""

    def __init__(self, *, away=False):
        self.away = away
        self.disk, self.topics = Disk(), {partition: [] for partition in PARTITIONS}
        self.sink, self.names, self.upstream = [], count(), Upstream()
        self.host, self.attempt, self.batch, self.relays = None, 0, 0, []
        self.fixed_ends, self.zombies, self.late = None, [], deque()
        self.cut_off, self.wall_s = None, 1e9

    # -- what happens outside ----------------------------------------------------------------

    def produce(self, number):
        partition = PARTITIONS[number % len(PARTITIONS)]
        if partition[0] == "prices":
            self.topics[partition] += self.upstream.writes(number // len(PARTITIONS))
        else:
            self.topics[partition].append((f"{partition[0]}-{next(self.names)}", None))

    def roots(self):
        """Return all that has to be done, each once: its stream, and its name."""
        return sorted({(p[0], name) for p, rows in self.topics.items() for name, _ in rows})

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
        arrival = Arrival(attempt=self.attempt, batch=self.batch)
        self.relays = [
            Relay(arrival, partition, self.disk.ends[self.disk.committed][partition])
            for partition in PARTITIONS
        ]

    def any_relay(self, number):
        every = [*self.relays, *self.zombies]
        return every[number % len(every)] if every else None

    def may_read(self, relay):
        rows = self.topics[relay.partition]
        end = self.fixed_ends[relay.partition] if self.fixed_ends else len(rows)
        return relay.state == "reads" and relay.position < end and relay.credit > 0

    def read(self, number):
        relay = self.any_relay(number)
        row = self.topics[relay.partition][relay.position]
        relay.outbox.append(("row", relay.position, row))
        relay.position += 1
        relay.credit -= 1

    def may_end(self, relay):
        return relay.state == "reads"

    def end(self, number):
        """End the input of a relay; what Spark has read by then comes without credit."""
        relay = self.any_relay(number)
        rows = self.topics[relay.partition]
        end = min(len(rows), relay.position + number % 3)
        if self.fixed_ends is not None:
            end = self.fixed_ends[relay.partition]
        for position in range(relay.position, end):
            relay.outbox.append(("row", position, rows[position]))
        relay.position = max(relay.position, end)
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
            case ("credit", number):
                relay.credit += number
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
            self.host.do(self.host.part.relay_left(relay.number))

    def fail(self, relay):
        """Fail a task: Spark ends the run, and the other tasks a moment later."""
        self.host_loses(relay)
        relay.state = "dead"
        if relay in self.zombies:
            self.zombies.remove(relay)
        elif relay in self.relays:
            self.zombies += [other for other in self.relays if other.state != "dead"]
            self.relays, self.attempt = [], 0

    def lose_executor(self, number):
        """Lose a task in a way that Spark runs it again in the same batch, from its start."""
        if not self.relays:
            return
        place = number % len(self.relays)
        lost = self.relays[place]
        arrival = Arrival(attempt=self.attempt, batch=self.batch)
        start = self.disk.ends[self.disk.committed][lost.partition]
        self.relays[place] = Relay(arrival, lost.partition, start)
        lost.state = "dead"
        self.host_loses(lost)

    # -- steps of the host -------------------------------------------------------------------

    def launch(self, _number=0):
        self.host = Host(self.disk, lambda: self.wall_s, away=self.away)

    def save(self, _number=0):
        cut, *more = self.host.saving.popleft()
        self.disk.save(cut, *more)
        self.host.on_disk.append(cut.id)

    def merge(self, _number=0):
        merge = self.host.merging.popleft()
        self.disk.merge(merge)
        self.host.merged.append(merge.upto)

    def merged(self, _number=0):
        self.host.ledger.state.merged(self.host.merged.popleft())

    def saved(self, _number=0):
        self.host.do(self.host.ledger.saved(self.host.on_disk.popleft()))

    def host_fails(self):
        """Let a host end that misses files: another one has gone on, and removed them."""
        assert not self.host.ledger.comes_of(self.disk.last(self.disk.committed))
        self.kill_host()

    # -- faults ------------------------------------------------------------------------------

    def kill_worker(self, number):
        relay = self.any_relay(number)
        if relay is not None:
            self.fail(relay)

    def kill_processor(self, number):
        if self.host is not None:
            self.host.kill_processor(number)

    def drain(self, _number=0):
        if self.host is not None:
            self.host.drained = True
            self.host.do(self.host.part.drain())

    def rescale(self, number):
        if self.host is not None:
            self.host.rescale(number)

    def node(self, number):
        """Let a node come, or go with all that is on it."""
        if self.host is not None:
            self.host.node(number)

    def time_passes(self, number=0):
        self.wall_s += 100.0
        if self.host is not None:
            self.host.time_passes(number)

    def clock_jumps(self, number):
        self.wall_s += 500.0 * (number - 5)

    def kill_host(self, _number=0):
        self.host = None

    def kill_in_step(self, number):
        """Let the host die in its next step: before it is logged, while it is, or after."""
        if self.host is not None:
            self.host.dies = number % 3

    def swap_host(self, _number=0):
        """Cut the host off, and go on with another one; it may come back with an old memory."""
        for relay in (*self.relays, *self.zombies):
            if relay.host is not None:
                self.host_loses(relay)
                relay.host = _NOWHERE
        self.host, self.cut_off = self.cut_off, self.host

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
            able += [(self.host.ready, n) for n in range(len(self.host.starting))]
            away = [n for n in range(2) if NODES[1 + n] not in self.host.nodes]
            able += [(self.host.node, n) for n in away]
            able += [(self.host.work, n) for n in range(len(self.host.busy))]
            able += [(self.host.told_tasks, 0)] * bool(self.host.asking)
            able += [(self.save, 0)] * bool(self.host.saving)
            able += [(self.saved, 0)] * bool(self.host.on_disk)
            able += [(self.merge, 0)] * bool(self.host.merging)
            able += [(self.merged, 0)] * bool(self.host.merged)
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

    def run(self, number, random, often=0.1):
        """Let so many things happen, in any order; input ends now and then, or more *often*."""
        for _ in range(number):
            able, ends = self.steps(), self.ends()
            if ends and (not able or random.random() < often):
                able = ends
            able = able or [(self.give_up, 0)]  # after a while, in which nothing happened
            self.happens(*random.choice(able))

    def give_up(self, _number=0):
        """Let the host fail a batch some of whose tasks do not begin: they ended before it."""
        assert self.host.ledger.missing
        for relay in (*self.relays, *self.zombies):
            if relay.host is self.host:
                relay.inbox.append(("refuse",))

    def happens(self, step, argument):
        """Let something happen; a host may end on it."""
        try:
            step(argument)
        except EngineError:
            self.host_fails()
        except Died:
            self.kill_host()

    def settle(self, random):
        """Let everything run, without faults, until nothing is left to do."""
        for _ in range(100_000):
            if self.is_quiet():
                return
            if self.host is not None and self.host.drained and self.is_done():
                self.kill_driver(0)  # it has ended in order; reminders wait for the next start
            self.run(1, random)
            self.happens(self.time_passes, 0)
        raise AssertionError("something waits for ever")

    def states(self, operator="score"):
        """Return the state of each key, as a host would find it that starts now."""
        state = self.restored_state()
        return {key: found for key in KEYS if (found := state.of(operator, key))}

    def pending(self):
        """Return what is to happen yet by the clock."""
        state, last = self.restored_state(), chr(0x10FFFF)
        beside = (REMINDERS, f"{EXPIRING}@expiry")
        return [due for name in beside for due in state.ordered(name, "", last, most=10**6)[0]]

    def restored_state(self):
        state = KeyedState(self.disk)
        state.restore(self.disk.load(self.disk.last(self.disk.committed)).changed)
        return state

    def is_quiet(self):
        return self.is_done() and not self.pending()

    def is_done(self):
        ends = self.disk.ends[self.disk.committed]
        cut = self.disk.load(self.disk.last(self.disk.committed))
        return (
            all(ends[partition] == len(rows) for partition, rows in self.topics.items())
            and not self.relays
            and not cut.open
            and not cut.spilled
        )
