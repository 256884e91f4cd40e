"""The desk in any order of events: nothing lost, nothing twice, keys in order."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from sojourn.app.operator import OnError
from sojourn.host.desk import Desk
from sojourn.host.instructions import (
    Fail,
    Finish,
    Give,
    Grant,
    KillProcessor,
    NotKept,
    Reply,
    StartProcessor,
)
from sojourn.host.messages import Hello, Record, Result
from sojourn.host.operator_desk import OperatorDesk

EVENTS = [
    *["send", "key", "everyone", "rule", "done", "partly", "raise", "die", "late"],
    *["scale", "leave", "fail", "unborn"],
]


@settings(max_examples=300)
@given(
    events=st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 9)), max_size=100),
    policy=st.builds(
        OnError, retries=st.integers(0, 2), then=st.sampled_from(["dead_letter", "stop"])
    ),
    service_s=st.sampled_from([1e-4, 1.0]),
)
def test_every_record_is_answered_once_and_keys_stay_in_order_whatever_happens(
    events, policy, service_s
):
    """Processors come, go, hang and die in any order, batches end and feeds fail.

    Nothing is lost, nothing answered twice, nothing done twice, and of each key one is in
    service, the one that came first. Every processor knows the latest rules, in order.
    """
    world = World(policy, service_s)
    world.do(world.desk.scaled(2, 0.0))
    for partition in range(2):
        world.come(partition)
    for event, number in events:
        world.event(event, number)
    world.settle()
    assert not any(feed.open for feed in world.feeds.values())
    assert sorted(world.finished) == sorted(feed.name for feed in world.feeds.values())
    assert sorted(world.done) == sorted(f"id-{n}" for n in range(world.sent))
    assert (world.desk.operator.waiting, world.desk.operator.hopeless) == (0, False)
    if policy.then == "dead_letter":
        world.check_rules()


class FeedInWorld:
    """What a feed of a partition brought in its batch, and what is not answered yet."""

    def __init__(self, name, batch):
        self.name, self.batch, self.credit = name, batch, 0
        self.all, self.open = [], {}


class World:
    """Carries out what a desk says: feeds, and processors that do as they are told."""

    def __init__(self, policy, service_s):
        self.policy, self.service_s, self.now_s = policy, service_s, 0.0
        self.desk = Desk(OperatorDesk(on_error=policy, ahead=3))
        self.sent = self.names = self.number = 0
        self.starting, self.busy = [], {}
        self.feeds, self.finished, self.done = {}, [], []
        self.by_key, self.failed, self.ending = {}, [], False
        self.learning, self.heard, self.latest = set(), {}, {}

    def do(self, instructions):
        for instruction in instructions:
            self.carry_out(instruction)

    def carry_out(self, instruction):
        match instruction:
            case StartProcessor(processor):
                self.starting.append(processor)
            case Give(processor, records, new):
                self.give(processor, records, new=new)
            case NotKept(told):
                self.latest[told.key] = -1
            case KillProcessor(processor):
                assert processor not in self.busy or processor in self.learning
                self.busy.pop(processor, None)
                self.heard.pop(processor, None)
            case Grant(feed, number):
                self.named(feed).credit += number
            case Reply():
                self.answered(instruction)
            case Fail(feed):
                self.failed.append(feed)
            case Finish(feed):
                self.finished.append(feed)

    def named(self, name):
        return next((feed for feed in self.feeds.values() if feed.name == name), None)

    def answered(self, reply):
        told = reply.record
        if told is not None:
            self.done.append(told.identity)
            if told.key in self.by_key:
                self.by_key[told.key].remove(told.identity)
        if (here := self.named(reply.feed)) is not None:
            del here.open[reply.answer.number]

    def give(self, processor, records, *, new):
        assert processor not in self.busy
        self.busy[processor] = list(records)
        if new:
            self.learning.discard(processor)
        else:
            self.learning.add(processor)
        for key in {told.key for told in records if not told.everyone} - {None}:
            given_out = [told.identity for told in records if told.key == key]
            assert given_out == self.by_key[key][: len(given_out)]
            elsewhere = [told.key for other in self.busy.values() for told in other]
            assert elsewhere.count(key) == len(given_out)

    def come(self, partition, *, before=None, leaves=False):
        """Begin a batch, with what was *before*; it fails, or leaves that to the next."""
        self.names += 1
        batch = 0 if before is None else before.batch + leaves
        here = self.feeds[partition] = FeedInWorld(self.names, batch)
        brought = [] if before is None else before.all
        if leaves:
            brought = list(before.open.values())
        hello = Hello("q", partition, batch, brings=len(brought) if leaves else None)
        self.do(self.desk.feed_came(here.name, hello))
        self.bring(here, brought)
        if self.ending:
            self.do(self.desk.feed_ended(here.name))

    def bring(self, here, records):
        numbered = []
        for told in records:
            self.number += 1
            numbered.append(replace(told, number=self.number))
        here.all += numbered
        here.open |= {told.number: told for told in numbered}
        self.do(self.desk.records_came(here.name, numbered, self.now_s))

    def event(self, event, number):
        self.now_s += 1.0
        if self.starting:
            name = self.starting.pop(0)
            if event == "unborn":
                self.do(self.desk.processor_died(name, "no room", self.now_s))
            else:
                self.heard[name] = {}
                self.do(self.desk.processor_ready(name, self.now_s))
        self.do(self.desk.time_passed(self.now_s))
        if event in ("send", "key", "everyone", "rule"):
            self.send(self.feeds[number % 2], event, number)
        elif event == "leave":
            self.leave(number % 2)
        elif event == "fail":
            self.fail(number % 2)
        elif event == "scale":
            self.do(self.desk.scaled(1 + number % 5, self.now_s))
        elif self.busy:
            self.work(event, number)
        stopped, self.failed = self.failed, []
        for partition in [p for p, feed in self.feeds.items() if feed.name in stopped]:
            self.fail(partition)

    def leave(self, partition):
        before = self.feeds[partition]
        self.do(self.desk.feed_leaves(before.name))
        self.finished.remove(before.name)
        self.come(partition, before=before, leaves=True)

    def fail(self, partition):
        before = self.feeds.pop(partition)
        self.desk.feed_left(before.name)
        self.come(partition, before=before)

    def send(self, here, event, number):
        if not here.credit:
            return
        here.credit -= 1
        fields = {
            "key": {"key": str(number % 4)},
            "everyone": {"everyone": True},
            "rule": {"everyone": True, "key": f"rule-{number % 2}"},
        }
        told = Record(0, f"id-{self.sent}", b"{}", **fields.get(event, {}))
        self.sent += 1
        if event == "key":
            self.by_key.setdefault(told.key, []).append(told.identity)
        self.bring(here, [told])

    def work(self, event, number):
        name = sorted(self.busy)[number % len(self.busy)]
        records = self.busy.pop(name)
        if event in ("die", "late"):
            late = event == "late"
            del self.heard[name]
            self.do(self.desk.processor_died(name, "killed", self.now_s, late=late))
            return
        several = 1 + number % len(records) if event == "partly" else len(records)
        if records[several:]:
            self.busy[name] = records[several:]
        fails = number % several if event == "raise" else several
        results = [self.result(records, place, fails) for place in range(several)]
        for told, result in zip(records, results, strict=False):
            if told.everyone and told.key is not None:
                self.hear(name, told, result)
        self.do(self.desk.processor_done(name, results, self.now_s))

    def result(self, records, place, fails):
        if place == fails:
            return Result([], "ValueError", took_s=self.service_s)
        if place > fails and records[place].key == records[fails].key is not None:
            return Result([], skipped=True)
        return Result([], took_s=self.service_s)

    def hear(self, name, told, result):
        """Take note of a rule that a processor has heard: after it, no older one."""
        place = int(told.identity.removeprefix("id-"))
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
        self.ending = True
        for here in list(self.feeds.values()):
            self.do(self.desk.feed_ended(here.name))
        for _ in range(10_000):
            if not (self.busy or self.starting or any(f.open for f in self.feeds.values())):
                break
            self.event("done", 0)
