"""The records of one operator and its processors: who gets which record.

Events go in, instructions come out; another part carries them out. There is one queue for
all processors, so a record never waits while one is idle. Only a record with a key waits for
those of its key, and one for everyone for all processors. While many wait for short services,
processors on other nodes have the next record before they are done with the one before.
"""

from bisect import insort
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sojourn.app.operator import OnError
from sojourn.host.desk.distances import Distances
from sojourn.host.desk.in_hand import Processor, RecordInHand, Round
from sojourn.host.desk.instructions import Give, KillProcessor, NotKept, StartProcessor
from sojourn.host.desk.keyed_queue import KeyedQueue
from sojourn.host.desk.lessons import Lessons
from sojourn.host.desk.processors import Processors
from sojourn.host.process.messages import Answer, Record, Result
from sojourn.plan import HERE

__all__ = ["Completed", "OperatorDesk", "OperatorInstruction", "Stopping"]

# What comes in hand ahead of processors, and what one is given at once, is at most so much
# work: enough to bridge the way to the relay and to a processor, too little to be noticed.
_AHEAD_S = 0.005
_AT_ONCE_S = 0.001
_MOST_AHEAD = 500
# Records that wait for their key keep no processor busy, so others are fetched in their
# place: enough that one frequent key starves nobody, and not the whole stream.
_MOST_BEHIND, _MOST_BEHIND_EACH = 100, 10
# So many nodes in a row are not lost by chance while they work on a record.
_MOST_LOST = 3
# Of the mean service time, what the latest record counts for.
_NEWEST = 0.05


@dataclass(frozen=True, slots=True)
class Completed:
    """A record is done."""

    job: RecordInHand
    answer: Answer


@dataclass(frozen=True, slots=True)
class Stopping:
    """A record stops the application: none behind it of its key is served."""

    job: RecordInHand
    reason: str
    traceback: str = ""


OperatorInstruction = Give | StartProcessor | KillProcessor | NotKept | Completed | Stopping


class OperatorDesk:
    """The records in hand of one operator, and its processors.

    *ahead* is how many records more than processors are in hand, or more if they take no
    time: enough to bridge the way here, and few, because what is not in hand waits where it
    can be seen. The *latest* of each key, of what is for everyone, is told to processors that
    start later.
    """

    def __init__(self, *, on_error: OnError | None = None, ahead: int = 2) -> None:
        self._on_error, self._ahead = on_error or OnError(), ahead
        self._pace_s: float | None = None
        self._queue: KeyedQueue[RecordInHand] = KeyedQueue()
        self._homeless: list[RecordInHand] = []
        self._processors = Processors()
        self._distances = Distances()
        self._in_service = self._in_lanes = 0
        self._arrived = 0
        self._rounds: dict[int, RecordInHand] = {}
        self._lessons = Lessons(self._processors)
        self.retried = self.dead = 0

    # -- what can be asked ----------------------------------------------------------------

    @property
    def on_error(self) -> OnError:
        """What happens to a record that cannot be done."""
        return self._on_error

    @property
    def wanted(self) -> int:
        """Processors that there should be."""
        return self._processors.wanted

    @property
    def running(self) -> int:
        """Processors that can take a record."""
        return len(self._processors.here)

    @property
    def running_by_node(self) -> Mapping[str, int]:
        """Processors that can take a record, by node: another mapping when that changes."""
        return self._processors.by_node

    @property
    def missing(self) -> str:
        """Why fewer processors run than are wanted, if some cannot be started."""
        return self._processors.missing

    @property
    def failures(self) -> int:
        """Starts that failed since one succeeded."""
        return self._processors.failures

    @property
    def hopeless(self) -> bool:
        """Whether there is no processor, and none can be started."""
        return self._processors.hopeless

    @property
    def waiting(self) -> int:
        """Records in hand that no processor works on."""
        return len(self._queue) + len(self._homeless) + self._in_lanes

    @property
    def room(self) -> int:
        """Records that are wanted in hand, so that processors have work and little more."""
        running = self.running
        ahead = self._ahead
        if self._pace_s:
            ahead = max(ahead, min(_MOST_AHEAD, int(running * _AHEAD_S / self._pace_s)))
            on_the_way = sum(
                k * (self._distances.at_a_time(node, self._pace_s) - 1)
                for node, k in self.running_by_node.items()
            )
            ahead += on_the_way + running if on_the_way else 0
        behind = min(self._queue.behind, _MOST_BEHIND + _MOST_BEHIND_EACH * running)
        return running + ahead - (self.waiting - behind + self._in_service)

    @property
    def latest(self) -> list[Record]:
        """What processors that start later are told first."""
        return self._lessons.latest.records

    def late(self, now_s: float, limit_s: float) -> list[int]:
        """Return the processors that have worked on one record for longer than *limit_s*."""
        return [
            name
            for name, p in self._processors
            if (p.jobs or p.learning) and now_s - p.since_s > limit_s
        ]

    def unready(self, now_s: float, limit_s: float) -> list[int]:
        """Return the processors that have been starting for longer than *limit_s*."""
        return [
            name for name, p in self._processors if not p.ready and now_s - p.since_s > limit_s
        ]

    # -- records --------------------------------------------------------------------------

    def put(self, record: Record) -> RecordInHand:
        """Take a record in hand; `turn` gives it to a processor."""
        self._arrived += 1
        job = RecordInHand(record, self._arrived)
        if record.everyone:
            self._for_everyone(job)
        else:
            self._queue.put(job)
        return job

    def keeps(self, record: Record) -> bool:
        """Return whether processors that start later are told a record."""
        return self._lessons.latest.has(record)

    def forget(self, latest: Sequence[Record] = ()) -> None:
        """Forget all records but the *latest* of each key, of what is for everyone.

        Processors go on with those that they are at, for nobody. Those that run are told the
        *latest* as well before they get another record: nobody knows what they know.
        """
        self._queue, self._homeless, self._rounds = KeyedQueue(), [], {}
        self._in_lanes = 0
        for _, processor in self._processors:
            processor.lane.clear()
            processor.tried = 0
            for job in processor.jobs:
                job.forgotten = True
        self._lessons.forget(latest)

    # -- processors -----------------------------------------------------------------------

    def scaled(self, wanted: int, now_s: float) -> list[OperatorInstruction]:
        """Return what to do to have *wanted* processors on this node alone."""
        return self.placed({HERE: wanted}, now_s)

    def placed(self, on: Mapping[str, int], now_s: float) -> list[OperatorInstruction]:
        """Return what to do to have so many processors *on* each node."""
        self._processors.place(on)
        return [*self._started(now_s), *self._settled(), *self.turn(now_s)]

    def node_came(self, node: str, now_s: float) -> list[OperatorInstruction]:
        """Return what to do when processors can be started on a node."""
        self._processors.node_came(node)
        return [*self._started(now_s), *self.turn(now_s)]

    def node_left(self, node: str, now_s: float) -> list[OperatorInstruction]:
        """Return what to do when a node is gone.

        Its records are not to blame for it, unless that happens to one again and again: some
        take more memory than a node has.
        """
        done: list[OperatorInstruction] = []
        back: list[RecordInHand] = []
        self._distances.forget(node)
        for _, processor in self._processors.node_left(node):
            jobs, processor.jobs = processor.jobs, []
            self._in_service -= len(jobs)
            for job in jobs:
                if job.forgotten:
                    continue
                job.lost += 1
                if job.round is not None:
                    done += self._missed(job, job.round)
                elif job.lost < _MOST_LOST or self._may_retry(job):
                    back.append(job)
                else:
                    reason = f"{job.lost} nodes in a row were lost while they worked on it"
                    done += self._condemned(job, reason)
            done += self._left_lane(processor)
        self._queue.give_back(back)
        return [*done, *self._started(now_s), *self.turn(now_s)]

    def time_passed(self, now_s: float) -> list[OperatorInstruction]:
        """Return what to do by now: start again what could not be started before."""
        return [*self._started(now_s), *self.turn(now_s)]

    def processor_ready(self, name: int, now_s: float) -> list[OperatorInstruction]:
        """Return what to do when a processor can take its first record."""
        processor = self._processors.get(name)
        if processor is None:
            return [KillProcessor(name)]
        self._processors.ready(name)
        self._lessons.begin(processor)
        homeless, self._homeless = self._homeless, []
        for job in sorted({*homeless, *self._rounds.values()}, key=lambda job: job.place):
            if job.round is None or not job.round.left:
                self._for_everyone(job)
            elif not self._lessons.latest.has_newer(job.place, job.record):
                # the others have it under way
                job.round.left += 1
                processor.lane.append(job)
                self._in_lanes += 1
        return [
            *self._lessons.told(name, processor, now_s),
            *self._settled(),
            *self.turn(now_s),
        ]

    def processor_done(
        self, name: int, results: Sequence[Result], now_s: float
    ) -> list[OperatorInstruction]:
        """Return what to do when a processor is done with the first of what it was given."""
        processor = self._processors.get(name)
        if processor is None:
            return []  # its node was gone when it said so
        number = len(results)
        if processor.learning:
            del processor.learning[:number]
            return [*self._lessons.told(name, processor, now_s), *self.turn(now_s)]
        jobs, processor.jobs = processor.jobs[:number], processor.jobs[number:]
        self._measure_way(processor, results, now_s)
        processor.since_s, processor.waits_for_first = now_s, False
        self._in_service -= number
        done: list[OperatorInstruction] = []
        back: list[RecordInHand] = []
        for job, result in zip(jobs, results, strict=True):
            if job.forgotten:
                continue
            if result.skipped:
                back.append(job)
                continue
            self._paced(result.took_s)
            if job.round is not None:
                done += self._did_its_part(processor, job, job.round, result)
            elif not result.error:
                answer = Answer(result.outputs, state=result.state, reminders=result.reminders)
                done += self._answered(job, answer)
            elif self._may_retry(job):
                back.append(job)
            else:
                done += self._condemned(job, result.error, result.traceback)
        self._queue.give_back(back)
        if not processor.jobs:
            done += self._gone(name) if processor.going else []
            self._processors.idles(name)
        return [*done, *self.turn(now_s)]

    def processor_lost(self, name: int) -> None:
        """Give a processor that is gone nothing more, while it is asked what it died of."""
        if (processor := self._processors.get(name)) is not None:
            processor.lost = True
            self._processors.withdraw(name)

    def processor_died(
        self, name: int, reason: str, now_s: float, *, late: bool = False
    ) -> list[OperatorInstruction]:
        """Return what to do when a processor is gone, whatever it was doing.

        Of several records nobody knows which it died of: each is tried again alone. One that
        was alone is tried once more; if its processor was ended because it was *late*, it had
        its chance.
        """
        processor = self._processors.remove(name)
        if processor is None:
            return []
        if not processor.ready:
            self._processors.not_started(processor.node, reason, now_s)
        done: list[OperatorInstruction] = [*self._lessons.failed(processor, reason)]
        jobs, processor.jobs = processor.jobs, []
        self._in_service -= len(jobs)
        back: list[RecordInHand] = []
        for job in jobs:
            if job.forgotten:
                continue
            job.deaths += not late
            if job.round is not None:
                done += self._missed(job, job.round, reason, late=late)
            elif len(jobs) > 1 or (job.deaths == 1 and not late):
                self.retried += 1
                job.alone = True
                back.append(job)
            elif self._may_retry(job):
                back.append(job)
            else:
                done += self._condemned(job, reason)
        self._queue.give_back(back)
        done += self._left_lane(processor)
        return [*done, *self._started(now_s), *self.turn(now_s)]

    # -- inside: records ------------------------------------------------------------------

    def _release(self, job: RecordInHand) -> None:
        if job.round is None:
            self._queue.release(job)

    def _may_retry(self, job: RecordInHand) -> bool:
        job.tries += 1
        again = job.tries <= self._on_error.retries
        job.alone = True
        self.retried += again
        return again

    def _condemned(
        self, job: RecordInHand, reason: str, traceback: str = ""
    ) -> list[OperatorInstruction]:
        """Do with a record that failed what the operator's policy says."""
        if self._on_error.then == "dead_letter":
            self.dead += 1
            outputs = job.round.outputs if job.round is not None else ()
            tries = max(1, job.tries)
            return self._answered(job, Answer(outputs, reason, traceback, tries))
        return [Stopping(job, reason, traceback)]

    def _answered(self, job: RecordInHand, answer: Answer) -> list[OperatorInstruction]:
        self._release(job)
        return [Completed(job, answer)]

    # -- inside: processors ---------------------------------------------------------------

    def _started(self, now_s: float) -> list[OperatorInstruction]:
        """Start what is wanted, unless that failed a moment ago."""
        asked = self._processors.to_start(now_s)
        return [StartProcessor(name, node) for name, node in asked]

    def _settled(self) -> list[OperatorInstruction]:
        """Let those go that are not wanted, as far as others have come in their place."""
        done: list[OperatorInstruction] = []
        for name in self._processors.surplus():
            done += self._let_go(name)
        return done

    def _let_go(self, name: int) -> list[OperatorInstruction]:
        processor = self._processors.get(name)
        if processor is None:
            return []
        processor.going = True
        self._processors.withdraw(name)
        done = self._left_lane(processor)
        return done if processor.jobs else [*done, *self._gone(name)]

    def _left_lane(self, processor: Processor) -> list[OperatorInstruction]:
        """Let records for everyone do without a processor that goes."""
        lane, processor.lane = processor.lane, deque()
        self._in_lanes -= len(lane)
        done: list[OperatorInstruction] = []
        for job in lane:
            if job.round is not None:
                done += self._missed(job, job.round)
        return done

    def _gone(self, name: int) -> list[OperatorInstruction]:
        self._processors.remove(name)
        return [KillProcessor(name)]

    # -- inside: records for everyone -------------------------------------------------------

    def _for_everyone(self, job: RecordInHand) -> None:
        """Let a record wait for each processor there is, or for the first that comes."""
        here = [processor for _, processor in self._processors if processor.here]
        job.round = Round(len(here))
        if job.key is not None:
            self._rounds[job.place] = job
        for processor in here:  # one that comes here again was before those that wait
            insort(processor.lane, job, key=lambda other: other.place)
        self._in_lanes += len(here)
        if not here:
            self._homeless.append(job)

    def _did_its_part(
        self, processor: Processor, job: RecordInHand, here: Round, result: Result
    ) -> list[OperatorInstruction]:
        """Take note of what a record for everyone came to at one processor."""
        if result.error:
            processor.tried += 1
            if processor.tried <= self._on_error.retries:
                if not processor.here:
                    return self._missed(job, here)
                self.retried += 1
                self._in_lanes += 1
                processor.lane.appendleft(job)  # only there it is not done yet
                return []
            if not here.error:
                here.error, here.traceback = result.error, result.traceback
                job.tries = processor.tried
        else:
            here.did += 1
            here.outputs += result.outputs
        processor.tried = 0
        here.left -= 1
        return self._rounded_off(job, here)

    def _missed(
        self, job: RecordInHand, here: Round, reason: str = "", *, late: bool = False
    ) -> list[OperatorInstruction]:
        """Do without a processor that is gone: the others have the record."""
        here.died = here.died or reason
        if late:
            here.error = here.error or reason
        here.left -= 1
        return self._rounded_off(job, here)

    def _rounded_off(self, job: RecordInHand, here: Round) -> list[OperatorInstruction]:
        """Answer a record for everyone, once, when nobody has it to do any more."""
        if here.left:
            return []
        self._rounds.pop(job.place, None)
        kept = self._kept(job) if here.did else []
        if here.error:
            return [*kept, *self._condemned(job, here.error, here.traceback)]
        if here.did:
            return [*kept, *self._answered(job, Answer(here.outputs))]
        if job.deaths > 1 and not self._may_retry(job):
            return self._condemned(job, here.died)
        self._for_everyone(job)  # all that had it are gone, and nobody has done it
        return []

    def _kept(self, job: RecordInHand) -> list[OperatorInstruction]:
        """Keep a record for processors that start later, if it has a key and is the latest."""
        if job.key is None or self._lessons.latest.has_newer(job.place, job.record):
            return []
        reason = self._lessons.latest.keep(job.place, job.record)
        return [NotKept(job.record, reason)] if reason else []

    # -- inside: work ---------------------------------------------------------------------

    def turn(self, now_s: float) -> list[OperatorInstruction]:
        """Give idle processors work."""
        done: list[OperatorInstruction] = []
        if self._lessons.are_owed:
            done += self._lessons.told_again(now_s)
        passed_by: list[int] = []
        queued = len(self._queue) > 0
        while (queued or self._in_lanes) and (idle := self._processors.next_idle()):
            name, processor = idle
            if processor.lane:
                self._in_lanes -= 1
                processor.jobs = [processor.lane.popleft()]
            elif queued:
                processor.jobs = self._queue.take(self._share())
                queued = bool(processor.jobs)
            if processor.jobs:
                processor.since_s, processor.waits_for_first = now_s, True
                self._in_service += len(processor.jobs)
                done.append(Give(name, tuple(job.record for job in processor.jobs)))
            else:
                passed_by.append(name)
        for name in passed_by:
            self._processors.idles(name)
        return [*done, *self._given_ahead()] if queued else done

    def _given_ahead(self) -> list[OperatorInstruction]:
        """Give processors that are far away the next records before they are done.

        Only while more wait than there are processors: whoever is idle first finds one.
        """
        done: list[OperatorInstruction] = []
        for name, processor, most in self._far():
            spare = len(self._queue) - self._queue.behind - self.running
            if spare <= 0:
                break
            taken = self._queue.take(min(most - len(processor.jobs), spare))
            if not taken or taken[0].alone:
                self._queue.give_back(taken)
                break
            processor.jobs = [*processor.jobs, *taken]
            self._in_service += len(taken)
            records = tuple(job.record for job in taken)
            done.append(Give(name, records, ahead=True))
        return done

    def _far(self) -> list[tuple[int, Processor, int]]:
        """Return who could have more records, and how many in all: who has fewest first."""
        by_node = self.running_by_node
        at_a_time = {node: self._distances.at_a_time(node, self._pace_s) for node in by_node}
        if max(at_a_time.values(), default=1) == 1:
            return []
        far = [
            (name, processor, at_a_time[processor.node])
            for name, processor in self._processors
            if name in self._processors.here
            and 0 < len(processor.jobs) < at_a_time[processor.node]
            and not (processor.lane or processor.jobs[0].alone or processor.jobs[0].forgotten)
        ]
        return sorted(far, key=lambda each: len(each[1].jobs))

    def _share(self) -> int:
        """Return how many records a processor is given: several where they take no time.

        Not more than its share, so that all have work.
        """
        most = 1 if not self._pace_s else int(_AT_ONCE_S / self._pace_s)
        share = -(-(len(self._queue) - 1) // max(1, self.running))
        return max(1, min(most, share))

    def _measure_way(
        self, processor: Processor, results: Sequence[Result], now_s: float
    ) -> None:
        """See how long records were on their way to another node and back."""
        if processor.node != HERE and processor.waits_for_first:
            worked_s = sum(result.took_s for result in results)
            way_s = max(0.0, now_s - processor.since_s - worked_s)
            self._distances.seen(processor.node, way_s)

    def _paced(self, took_s: float) -> None:
        before = took_s if self._pace_s is None else self._pace_s
        self._pace_s = before + _NEWEST * (took_s - before)
