"""The desk of an operator in any order of events: nothing lost or twice, keys in order."""

from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.app.operator import OnError
from sojourn.decide.plan import HERE
from sojourn.spark.host.batch.cut import OpenRecord
from sojourn.spark.host.desk.events import (
    NodeCame,
    NodeLeft,
    PlacementAsked,
    ProcessorDone,
    ProcessorEnded,
    ProcessorReady,
    TimePassed,
)
from sojourn.spark.host.desk.instructions import (
    Give,
    KillProcessor,
    NotKept,
    RecordCompleted,
    StartProcessor,
    StopPart,
)
from sojourn.spark.host.desk.operator_desk import OperatorDesk
from sojourn.spark.wire.processor import Result
from sojourn.spark.wire.record import Record, Root

AT = "split"

EVENTS = [
    *["send", "key", "everyone", "rule", "done", "partly", "raise", "die", "late"],
    *["scale", "place", "node", "restore", "unborn", "burst"],
]
NODES = (HERE, "node-1", "node-2")


@settings(max_examples=300)
@given(
    events=st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 9)), max_size=100),
    policy=st.builds(
        OnError, retries=st.integers(0, 2), then=st.sampled_from(["dead_letter", "stop"])
    ),
    service_s=st.sampled_from([1e-4, 1.0]),
    away=st.booleans(),
)
def test_every_record_is_done_once_and_keys_stay_in_order_whatever_happens(
    events, policy, service_s, away
):
    """Processors come, go, hang and die in any order, and all is restored from a cut.

    Nothing is lost, nothing done twice, and of each key one is in service, the one that came
    first. Every processor knows the latest rules, in order.
    """
    world = World(policy, service_s)
    world.do(world.desk.handle(PlacementAsked(AT, {HERE: 2}), 0.0))
    if away:
        world.go_away()
    for event, number in events:
        world.event(event, number)
    world.settle()
    assert not world.open
    assert sorted(world.done) == sorted(f"id-{n}" for n in range(world.sent))
    assert (world.desk.waiting, world.desk.processors.hopeless) == (0, False)
    if policy.then == "dead_letter":
        world.check_rules()


class World:
    """Carries out what a desk says, with processors that do as they are told."""

    def __init__(self, policy, service_s):
        self.policy, self.service_s, self.now_s = policy, service_s, 0.0
        self.desk = OperatorDesk(on_error=policy, ahead=3)
        self.sent = 0
        self.nodes, self.node_of = {HERE}, {}
        self.starting, self.busy, self.at_forgotten = [], {}, set()
        self.open, self.done, self.by_key, self.stopped = {}, [], {}, False
        self.learning, self.heard, self.latest = set(), {}, {}
        self.reached = {}

    def do(self, instructions):
        for instruction in instructions:
            self.carry_out(instruction)
        reached = dict(self.desk.processors.by_node), self.desk.processors.missing
        # who runs is told to others, and is looked at only if it was counted
        assert self.reached.setdefault(self.desk.processors.changes, reached) == reached

    def carry_out(self, instruction):
        match instruction:
            case StartProcessor(processor, node):
                assert node in self.nodes
                self.node_of[processor] = node
                self.starting.append(processor)
            case Give(processor, records, new, ahead=ahead):
                self.give(processor, records, new=new, ahead=ahead)
            case NotKept(told):
                self.latest[told.key] = -1
            case KillProcessor(processor):
                assert processor not in self.busy or processor in self.learning
                self.busy.pop(processor, None)
                self.heard.pop(processor, None)
            case RecordCompleted(done):
                self.completed(done.record)
            case StopPart(failed):
                assert failed.record.name in self.open
                self.stopped = True

    def completed(self, told):
        self.done.append(told.name)
        del self.open[told.name]
        if told.key in self.by_key:
            self.by_key[told.key].remove(told.name)

    def give(self, processor, records, *, new, ahead):
        assert ahead == (processor in self.busy)
        assert not ahead or self.node_of[processor] != HERE
        self.busy[processor] = [*self.busy.get(processor, []), *records]
        if new:
            self.learning.discard(processor)
        else:
            self.learning.add(processor)
        for key in {told.key for told in records if not told.everyone} - {None}:
            given_out = [told.name for told in records if told.key == key]
            assert given_out == self.by_key[key][: len(given_out)]
            elsewhere = [
                told.key
                for other, some in self.busy.items()
                if other not in self.at_forgotten
                for told in some
            ]
            assert elsewhere.count(key) == len(given_out)

    def event(self, event, number):
        self.now_s += 1.0
        if self.starting:
            name = self.starting.pop(0)
            if event == "unborn":
                self.do(self.desk.handle(ProcessorEnded(AT, name, "no room"), self.now_s))
            else:
                self.heard[name] = {}
                self.do(self.desk.handle(ProcessorReady(AT, name), self.now_s))
        self.do(self.desk.handle(TimePassed(), self.now_s))
        if event in ("send", "key", "everyone", "rule", "burst"):
            self.send(event, number)
        elif event == "restore":
            self.restore()
        elif event == "scale":
            self.do(self.desk.handle(PlacementAsked(AT, {HERE: 1 + number % 5}), self.now_s))
        elif event == "place":
            on = {NODES[number % 3]: 1 + number % 2, NODES[number % 5 % 3]: 2}
            self.do(self.desk.handle(PlacementAsked(AT, on), self.now_s))
        elif event == "node":
            self.node(NODES[1 + number % 2])
        elif self.busy:
            self.work(event, number)
        if self.stopped:
            self.restore()

    def go_away(self):
        """Have processors where it is known that the way is long, and many records wait."""
        self.node("node-1")
        self.do(self.desk.handle(PlacementAsked(AT, {"node-1": 2}), self.now_s))
        for event, number in [*[("send", 0)] * 3, *[("done", 0)] * 3, ("burst", 5)]:
            self.event(event, number)

    def node(self, node):
        """Let a node come, or go with all that is on it."""
        if node not in self.nodes:
            self.nodes.add(node)
            self.do(self.desk.handle(NodeCame(node), self.now_s))
            return
        self.nodes.discard(node)
        for name in [name for name, on in self.node_of.items() if on == node]:
            self.busy.pop(name, None)
            self.heard.pop(name, None)
            self.learning.discard(name)
            if name in self.starting:
                self.starting.remove(name)
        self.do(self.desk.handle(NodeLeft(node), self.now_s))

    def restore(self):
        """Forget all, and go on with what is open, as a part does from a cut."""
        self.stopped = False
        self.at_forgotten = set(self.busy) - self.learning | (
            self.at_forgotten & set(self.busy)
        )
        latest = self.desk.latest.records
        self.desk.forget(latest)
        # they hear all of it again, and it is done or not as if never before
        self.heard = {name: {} for name in self.heard}
        self.latest = {told.key: _place(told) for told in latest}
        for told in self.open.values():
            self.put(told)
        self.do(self.desk.turn(self.now_s))

    def send(self, event, number):
        if event == "burst":
            for place in range(3 * number):
                self.send(("send", "key")[place % 2], number + place)
        if event == "burst" or self.desk.room <= 0:
            return
        fields = {
            "key": {"key": str(number % 4)},
            "everyone": {"everyone": True},
            "rule": {"everyone": True, "key": f"rule-{number % 2}"},
        }
        told = Record(f"id-{self.sent}", b"{}", **fields.get(event, {}))
        self.sent += 1
        if event == "key":
            self.by_key.setdefault(told.key, []).append(told.name)
        self.open[told.name] = told
        self.put(told)
        self.do(self.desk.turn(self.now_s))

    def put(self, told):
        place = _place(told)
        self.desk.put(OpenRecord(Root(("lines", 0), place), "split", told, 1 + place))

    def work(self, event, number):
        name = sorted(self.busy)[number % len(self.busy)]
        records, forgotten = self.busy.pop(name), name in self.at_forgotten
        self.at_forgotten.discard(name)
        if event in ("die", "late"):
            late = event == "late"
            del self.heard[name]
            self.do(self.desk.handle(ProcessorEnded(AT, name, "killed", late=late), self.now_s))
            return
        several = 1 + number % len(records) if event == "partly" else len(records)
        if records[several:]:
            self.busy[name] = records[several:]
            if forgotten:
                self.at_forgotten.add(name)
        fails = number % several if event == "raise" else several
        results = [self.result(records, place, fails) for place in range(several)]
        for told, result in zip(records, results, strict=False):
            if told.everyone and told.key is not None and not forgotten:
                self.hear(name, told, result)
        self.do(self.desk.handle(ProcessorDone(AT, name, results), self.now_s))

    def result(self, records, place, fails):
        if place == fails:
            return Result([], "ValueError", took_s=self.service_s)
        if place > fails and records[place].key == records[fails].key is not None:
            return Result([], skipped=True)
        return Result([], took_s=self.service_s)

    def hear(self, name, told, result):
        """Take note of a rule that a processor has heard: after it, no older one."""
        place = _place(told)
        if self.policy.then == "dead_letter":
            assert place >= self.heard[name].get(told.key, -1)
        self.heard[name][told.key] = place
        if not result.error and name not in self.learning:
            self.latest[told.key] = max(place, self.latest.get(told.key, -1))

    def check_rules(self):
        for heard in self.heard.values():
            for rule, place in self.latest.items():
                assert heard.get(rule, -1) >= place

    def settle(self):
        for node in set(NODES) - self.nodes:
            self.node(node)
        for _ in range(10_000):
            if not (self.busy or self.starting or self.open):
                break
            self.event("done", 0)


def _place(told):
    return int(told.name.removeprefix("id-"))
