"""Requests the nodes of a plan, and gives back nodes once they are empty."""

from collections.abc import Collection, Mapping, Sequence

from sojourn.decide.plan import NodePlan
from sojourn.errors import EngineError
from sojourn.measure.node_costs import NodeCosts, NodeMoves
from sojourn.spark.driver.hosts.controller import Controller
from sojourn.spark.driver.nodes.negotiator import SparkNegotiator
from sojourn.spark.driver.nodes.node_health import settled_nodes

__all__ = ["RequestedNodes"]


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
        self._moves = NodeMoves()
        self._plan: NodePlan | None = None
        self._noted: NodePlan | None = None
        self._returned: frozenset[str] = frozenset()
        self._refused = ""

    @property
    def costs(self) -> NodeCosts:
        """The measured times of adding and of removing a node."""
        return self._moves.costs

    @property
    def refused(self) -> str:
        """The reason why the cluster refused the last request; empty if it accepted it."""
        return self._refused

    def request(self, plan: NodePlan | None) -> None:
        """Carry out *plan* from the next look on; None leaves nodes as they are."""
        self._plan = plan

    def look(self, now_s: float, nodes: Sequence[str], executor_of: Mapping[str, str]) -> None:
        """Request missing nodes, and give back those that are empty.

        *nodes* are connected; *executor_of* has the executor ids of all registered nodes.
        """
        plan = self._plan
        placed = {name: self._controller.placed(name) for name in self._operators}
        wanted = {name: self._controller.wanted(name) for name in self._operators}
        settled = settled_nodes(nodes, wanted, placed)
        self._moves.saw(now_s, there=list(executor_of), settled=settled)
        if plan is None:
            return
        self._note(now_s, plan)
        told = (*placed.values(), *wanted.values())
        used = {node for on in told for node, k in on.items() if k}
        try:
            self._carry_out(plan, used, executor_of)
        except EngineError as error:
            self._refused = str(error)
        else:
            self._refused = ""

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
                self._moves.released(now_s, node)
                number -= before is not None
        if plan.number > number:
            self._moves.asked(now_s, plan.number - number)
