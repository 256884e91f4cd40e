"""The loop of a running application, which one thread runs and others control."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import inf

from sojourn.decide.objective import Objective
from sojourn.decide.target import Target
from sojourn.engine import Engine, HasNodes, Health, Progress, drain, health
from sojourn.errors import ApplicationStopped, BadInput, EngineError
from sojourn.knowledge import Decision, Episode, ErrorBudget, Knowledge, Wish
from sojourn.loop import ACTIVE, PASSIVE, Loop, Mode
from sojourn.measure.node_costs import Bill
from sojourn.measure.observation import Observation
from sojourn.service.orders import LoopSettings, MakePolicy, Orders, checked_allocation
from sojourn.service.warnings import Floor, Stalls
from sojourn.topology import Topology

RESUMES = "`sojourn resume` starts it again"
"""The hint in messages while the loop is paused."""

# After this number of failures in a row, within this time, the loop stops deciding.
_MOST_FAILURES, _WITHIN_S = 10, 60.0
_MOST_NOTICES = 100


class Supervisor:
    """A started engine and its loop.

    `turns` must be called from one thread only; all other methods are thread-safe. A change by
    hand is never undone by a decision in progress, because both take the same lock. *acting* is
    true while a decision is carried out, which must not be interrupted. *save* is called with
    the running allocation at each turn and after each change by hand. *budget* is the error
    budget of the last run.
    """

    def __init__(
        self,
        engine: Engine,
        topology: Topology,
        make: MakePolicy,
        settings: LoopSettings,
        save: Callable[[Mapping[str, int]], None] = lambda _allocation: None,
        budget: ErrorBudget | None = None,
    ) -> None:
        self._save = save
        self.engine, self.topology, self.every_s = engine, topology, settings.every_s
        self._make, self._price_per_hour = make, settings.price_per_hour
        self.orders = Orders.of(
            make, topology, settings.objective, settings.most, settings.placement
        )
        self.changes = 0
        self.acting = False
        self._ended = False
        self._floor, self.stalls = Floor(), Stalls(settings.midnight_s)
        self._lock = threading.Lock()
        self._failures: deque[float] = deque(maxlen=_MOST_FAILURES)
        self._notices: deque[Episode] = deque(maxlen=_MOST_NOTICES)
        self._loop = Loop(
            engine,
            topology,
            self.orders.policy,
            every_s=settings.every_s,
            mode=ACTIVE if settings.active else PASSIVE,
            knowledge=Knowledge(
                topology=topology,
                plan=engine.plan,
                midnight_s=settings.midnight_s,
                budget=budget,
            ),
            placer=self.orders.placer,
            bounds=settings.nodes,
            objective=settings.objective,
        )
        if isinstance(engine, HasNodes):
            engine.on_nodes_changed(self._nodes_changed)
            self._nodes_changed()  # the first plan does not place processors on nodes

    @property
    def knowledge(self) -> Knowledge:
        return self._loop.knowledge

    @property
    def mode(self) -> Mode:
        return self._loop.mode

    @property
    def warning(self) -> str:
        """Why the target cannot be met, according to measurements; "" if it can."""
        return self._floor.warning

    @property
    def bill(self) -> Bill | None:
        """The cost of nodes so far; None if their price was not given."""
        if self._price_per_hour is None:
            return None
        node_s = health(self.engine).node_s
        if node_s is None:  # the nodes of this engine never change
            node_s = self.engine.now_s * len(self.engine.nodes)
        return Bill.of(node_s, self._price_per_hour)

    def health(self) -> Health:
        """Return the health of the engine, with the notices of the loop itself."""
        of_engine = health(self.engine)
        return replace(of_engine, notices=(*of_engine.notices, *self.stalls.notices))

    def end(self) -> None:
        self._ended = True

    def turns(self, until_s: float = inf) -> Iterator[Episode]:
        """Yield each turn, and the changes by hand between turns, until *until_s*.

        Raise `EngineError` when the application stops.
        """
        while not self._ended and self._loop.continues(until_s):
            yield from self._turn()

    def untold(self) -> Iterator[Episode]:
        """Yield the changes by hand since the last turn."""
        while self._notices:
            yield self._notices.popleft()

    def scale(self, asked: Mapping[str, int], by: str = "") -> str:
        """Set processors, and pause the loop, which would undo the change; return a message."""
        with self._lock:
            self._check_open()
            before, reason = self.engine.plan, f"set by hand with `sojourn scale`{_by(by)}"
            wanted = checked_allocation(
                self.topology, before.allocation, asked, self.orders.most
            )
            done = self._loop.set_processors(wanted, reason)
            self._save(self.engine.plan.allocation)
            if self.mode.name != "failed":
                self._follow(Mode("paused", "processors were set by hand"))
            changed = {} if done.cost is None else done.cost.changed
            if not changed:
                self._told(f"paused with `sojourn scale`{_by(by)}: it only recommends")
                same = ", ".join(f"{name}={processors}" for name, processors in asked.items())
                return f"{same} already; the loop is paused: {RESUMES}"
            self.changes += 1
            self._notice(done)
        said = ", ".join(f"{name} {was} -> {now}" for name, (was, now) in changed.items())
        return f"{said}; the loop is paused: {RESUMES}"

    def pause(self, by: str = "") -> str:
        """Pause the loop: it only recommends. Return a message."""
        with self._lock:
            self._check_open()
            if self.mode.name == "failed":
                return f"the loop has stopped already: {self.mode.why}"
            self._follow(Mode("paused", "it was paused by hand"))
            self._told(f"paused with `sojourn pause`{_by(by)}: it only recommends")
        return f"the loop is paused: it measures and recommends; {RESUMES}"

    def resume(self, by: str = "") -> str:
        with self._lock:
            self._check_open()
            self._failures.clear()
            self._follow(ACTIVE)
            self._told(f"resumed with `sojourn resume`{_by(by)}: {self.orders.said}")
            return f"the loop is active: {self.orders.said}"

    def set_goal(
        self,
        target: Target | None = None,
        most: int | None = None,
        by: str = "",
        *,
        slice_s: float | None = None,
        kept: float | None = None,
        placement: str | None = None,
    ) -> str:
        """Change the objective, the maximum number of processors, or the placement.

        Return a message.
        """
        if all(each is None for each in (target, most, slice_s, kept, placement)):
            raise BadInput(
                "nothing to set; give a target, a maximum number of processors or a placement"
            )
        with self._lock:
            self._check_open()
            now = self.orders
            self.orders = Orders.of(
                self._make,
                self.topology,
                Objective(
                    target=now.target if target is None else target,
                    slice_s=now.objective.slice_s if slice_s is None else slice_s,
                    kept=now.objective.kept if kept is None else kept,
                ),
                now.most if most is None else most,
                placement or now.placement,
            )
            self._follow(self.mode)
            known = self.knowledge
            self._floor.judge(known.observations, known.topology, self.orders.target)
            warned = f"; but {self.warning}" if self.warning else ""
            self._told(f"set with `sojourn set`{_by(by)}: {self.orders.said}{warned}")
            idle = "" if self.mode.active else f"; the loop is paused: {RESUMES}"
            return f"now {self.orders.said}{idle}{warned}"

    def drain(self, progress: Progress) -> None:
        """Finish the current batches; later changes are refused."""
        with self._lock:
            self._follow(Mode("ending", "the application is stopping"))
        drain(self.engine, progress)

    def _turn(self) -> Iterator[Episode]:
        """Run a turn; yield the changes by hand since the last one, then the turn."""
        turned: tuple[Episode, ...] = ()
        try:
            turned = (self._decided(self._look()),)
        except EngineError:
            raise
        except Exception as error:  # noqa: BLE001 - a bad policy must not stop the application
            self._start_over(error)
        else:
            self._failures.clear()
        yield from self.untold()
        yield from turned

    def _nodes_changed(self) -> None:
        """Decide immediately on added or lost nodes, in the thread of the engine."""
        with self._lock:
            try:
                for episode in self._loop.follow_nodes():
                    self._notice(episode)
            except Exception as error:  # noqa: BLE001 - the next turn retries
                self._told("nodes have changed", f"{type(error).__name__}: {error}")

    def _look(self) -> Observation:
        observation = self._loop.look()
        if failure := health(self.engine).failure:
            raise ApplicationStopped(failure)
        return observation

    def _decided(self, observation: Observation) -> Episode:
        with self._lock:
            self.acting = True
            try:
                episode = self._loop.decide(observation)
                self.changes += episode.cost is not None and bool(episode.cost.changed)
                target, known = self.orders.target, self.knowledge
                self.stalls.saw(observation, known.topology)
                if self._floor.saw(known.observations, known.topology, target):
                    self._told(self.warning)
            finally:
                # also after a failure, which may have changed the allocation
                self._save(self.engine.plan.allocation)
                self.acting = False
        return replace(episode, target=target)

    def _start_over(self, error: Exception) -> None:
        """Restart the loop after *error*; stop deciding after too many failures."""
        if self.mode.name == "failed":
            time.sleep(self.every_s)  # observations fail too, which was reported before
            return
        failure = f"{type(error).__name__}: {error}"
        said = "the loop failed and was restarted"
        with self._lock:
            now_s = time.monotonic()
            self._failures.append(now_s)
            often = len(self._failures) == _MOST_FAILURES
            if often and now_s - self._failures[0] <= _WITHIN_S:
                said = f"the loop failed {_MOST_FAILURES} times and has stopped; {RESUMES}"
                self._follow(Mode("failed", f"{said}: {failure}"))
            self._loop.start_over()
            self._told(said, failure)

    def _follow(self, mode: Mode) -> None:
        """Give the loop the current orders, in *mode*; a failed loop holds the allocation."""

        def hold(knowledge: Knowledge, /) -> Wish:
            return Wish(allocation=knowledge.allocation, reason=mode.why)

        policy = hold if mode.name == "failed" else self.orders.policy
        self._loop.follow(policy, mode, self.orders.placer, self.orders.objective)

    def _check_open(self) -> None:
        if self.mode.name == "ending":
            raise EngineError(f"nothing can be changed: {self.mode.why}")

    def _told(self, reason: str, failure: str = "") -> None:
        """Record an order or a failure that does not change processors."""
        same = self.engine.plan
        decision = Decision(
            at_s=self.engine.now_s,
            before=same,
            after=replace(same, reason=reason, expected=None),
        )
        self._notice(Episode.between_turns(decision, failure=failure))

    def _notice(self, episode: Episode) -> None:
        """Record an event between turns, for the output and the history."""
        self._notices.append(replace(episode, target=self.orders.target))


def _by(who: str) -> str:
    return f" by {who}" if who else ""
