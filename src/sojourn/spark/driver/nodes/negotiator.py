"""Requests executors of Spark as plans say, gives them back, removes those that do not answer.

Spark lists an executor whose machine has vanished for another half a minute, and schedules
tasks of a retried batch on it.
"""

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from sojourn.decide.plan import NodePlan, Placement
from sojourn.errors import EngineError
from sojourn.measure.node_costs import NodeMoves
from sojourn.spark.driver.hosts.controller import Controller
from sojourn.spark.driver.nodes.executors import executors

_DECOMMISSIONING = "spark.decommission.enabled"
_WHY = "its agent does not answer"


class SparkNegotiator:
    """The executors of *session*, which must have `spark.decommission.enabled`.

    Before the first request, the registered executors are wanted. An executor that is given
    back receives no new tasks and leaves when its running tasks end, that is, with the batch;
    killing it would fail the batch. All methods are idempotent.
    """

    def __init__(self, session: SparkSession) -> None:
        if session.conf.get(_DECOMMISSIONING, "false") != "true":
            raise EngineError(
                "executors cannot be released without failing a batch; set "
                f"{_DECOMMISSIONING} to true in the session"
            )
        self._session = session
        self._lock = threading.Lock()
        self._asked: int | None = None
        self._given_back: set[str] = set()

    @property
    def wanted(self) -> int:
        """The number of executors to have: requested ones without those given back."""
        with self._lock:
            return self._wanted()

    def ask(self, number: int) -> None:
        """Ask Spark for *number* executors in all, not fewer than `wanted`."""
        with self._lock:
            wanted = self._wanted()
            if number < wanted:
                raise EngineError(
                    f"{number} nodes are fewer than the {wanted} wanted; name those to release"
                )
            if number != self._asked:
                self._request(number)

    def give_back(self, names: Collection[str]) -> None:
        """Decommission these executors, without replacement. Idempotent."""
        with self._lock:
            going = sorted(set(names) - self._given_back)
            if not going:
                return
            there = {each.id for each in executors(self._session)} - self._given_back
            if unknown := [name for name in going if name not in there]:
                raise EngineError(f"there is no executor {', '.join(unknown)} to release")
            wanted = self._wanted()
            # lower first: Spark replaces an executor that leaves while more are wanted
            self._request(wanted - len(going))
            left = set(self._decommission(going))
            self._given_back |= left
            if refused := [name for name in going if name not in left]:
                self._request(wanted - len(left))
                raise EngineError(
                    f"Spark refused to decommission executor {', '.join(refused)}"
                )

    def _wanted(self) -> int:
        if self._asked is not None:
            return self._asked
        return len(executors(self._session))

    def _request(self, number: int) -> None:
        jvm: Any = self._session.sparkContext._jvm  # noqa: SLF001 - Python has no such call
        # the preferred locations of tasks: none
        nowhere = jvm.PythonUtils.toScalaMap(jvm.java.util.HashMap())
        try:
            accepted = self._context.requestTotalExecutors(number, 0, nowhere)
        except Py4JError as error:
            raise EngineError(f"Spark failed to ask for {number} executors: {error}") from error
        if not accepted:
            raise EngineError(
                f"the cluster did not accept a request for {number} executors; "
                "is it a local master?"
            )
        self._asked = number

    def _decommission(self, names: Sequence[str]) -> tuple[str, ...]:
        """Decommission executors; return those for which Spark accepts it."""
        context = self._session.sparkContext
        jvm, gateway = context._jvm, context._gateway  # type: Any, Any  # noqa: SLF001
        info = jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo
        pairs = gateway.new_array(jvm.scala.Tuple2, len(names))
        for place, name in enumerate(names):
            told = info("released by Sojourn", jvm.scala.Option.empty())
            pairs[place] = jvm.scala.Tuple2(name, told)
        # we lower the total ourselves: without a request before, Spark would set it to 0
        adjust_total, by_executor = False, False
        backend = self._context.schedulerBackend()
        try:
            left = backend.decommissionExecutors(pairs, adjust_total, by_executor)
        except Py4JError as error:
            raise EngineError(f"Spark failed to decommission executors: {error}") from error
        return tuple(name for name in left.mkString(",").split(",") if name)

    @property
    def _context(self) -> Any:  # noqa: ANN401 - of Java
        return self._session.sparkContext._jsc.sc()  # noqa: SLF001


class RequestedNodes:
    """Carries out a plan of nodes, through *negotiator*.

    *controller* knows on which nodes the *operators* have processors. A request that the
    cluster refuses is repeated at the next `look`. Only one thread may call `look`.
    """

    def __init__(
        self, negotiator: SparkNegotiator, operators: Collection[str], controller: Controller
    ) -> None:
        self._negotiator = negotiator
        self._operators, self._controller = operators, controller
        self.moves = NodeMoves()
        self.plan: NodePlan | None = None
        """What the next look carries out; None leaves nodes as they are."""
        self.refused = ""
        """Why the cluster refused the last request; empty if it accepted it."""
        self._noted: NodePlan | None = None
        self._returned: frozenset[str] = frozenset()

    def look(self, now_s: float, nodes: Sequence[str], executor_of: Mapping[str, str]) -> None:
        """Request missing nodes, and give back those that are empty.

        *nodes* are connected; *executor_of* has the executor ids of all registered nodes.
        """
        plan = self.plan
        placed = {name: self._controller.placed(name) for name in self._operators}
        wanted = {name: self._controller.wanted(name) for name in self._operators}
        settled = _settled(nodes, wanted, placed)
        self.moves.saw(now_s, there=list(executor_of), settled=settled)
        if plan is None:
            return
        self._note(now_s, plan)
        told = (*placed.values(), *wanted.values())
        used = {node for on in told for node, k in on.items() if k}
        try:
            self._carry_out(plan, used, executor_of)
        except EngineError as error:
            self.refused = str(error)
        else:
            self.refused = ""

    def _carry_out(
        self, plan: NodePlan, used: Collection[str], executor_of: Mapping[str, str]
    ) -> None:
        self._returned &= executor_of.keys()
        staying = {node for node in plan.given_back if node in executor_of} - self._returned
        if empty := staying.difference(used):
            self._negotiator.give_back([executor_of[node] for node in sorted(empty)])
            self._returned |= empty
        # nodes that are not empty yet are not given back, so they still count
        number = plan.number + len(staying - empty)
        if number > self._negotiator.wanted:
            self._negotiator.ask(number)

    def _note(self, now_s: float, plan: NodePlan) -> None:
        """Record the times of requests and releases, for `costs`."""
        before, self._noted = self._noted, plan
        number = self._negotiator.wanted if before is None else before.number
        known = () if before is None else before.given_back
        for node in plan.given_back:
            if node not in known:
                self.moves.released(now_s, node)
                number -= before is not None
        if plan.number > number:
            self.moves.asked(now_s, plan.number - number)


def _settled(nodes: Iterable[str], wanted: Placement, placed: Placement) -> list[str]:
    """Return the *nodes* with processors, if all those *wanted* there are *placed*.

    >>> wanted = {"split": {"a": 1, "b": 1}, "count": {"b": 2}}
    >>> _settled(["a", "b", "c"], wanted, {"split": {"a": 1, "b": 1}, "count": {"b": 1}})
    ['a']
    """
    return [
        node
        for node in nodes
        if any(on.get(node) for on in placed.values())
        and all(placed[o].get(node, 0) >= on.get(node, 0) for o, on in wanted.items())
    ]


def remove_executor(session: SparkSession, name: str) -> None:
    """Remove an executor from Spark, and ask the cluster to kill and replace it.

    Spark takes the same steps when heartbeats of an executor are missing. If they fail here,
    Spark repeats them later.
    """
    context = session.sparkContext
    java: Any = context._jsc.sc()  # noqa: SLF001 - Python has no such call
    jvm: Any = context._jvm  # noqa: SLF001
    with suppress(Py4JError):
        java.killAndReplaceExecutor(name)
        nobody, by_application = jvm.scala.Option.empty(), False
        lost = jvm.org.apache.spark.scheduler.ExecutorProcessLost(_WHY, nobody, by_application)
        java.schedulerBackend().removeExecutor(name, lost)
