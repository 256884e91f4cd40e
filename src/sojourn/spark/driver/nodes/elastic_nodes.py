"""Nodes that are asked for when processors need them, and given back when they are empty."""

from collections.abc import Collection, Mapping, Sequence

from sojourn.engine.negotiator import Negotiator
from sojourn.errors import EngineError
from sojourn.measure.node_costs import NodeCosts, NodeMoves
from sojourn.spark.driver.hosts.controller import Controller
from sojourn.spark.driver.nodes.node_health import settled_nodes
from sojourn.spark.driver.nodes.node_scaling import AskFor, NodeBounds, NodeScaling, Release

__all__ = ["ElasticNodes"]


class ElasticNodes:
    """As many nodes, within *bounds*, as processors need; a *negotiator* gives and takes them.

    *controller* tells on which of them the *operators* have processors.
    """

    def __init__(
        self,
        negotiator: Negotiator,
        bounds: NodeBounds,
        operators: Collection[str],
        controller: Controller,
    ) -> None:
        self._negotiator, self._scaling = negotiator, NodeScaling(bounds)
        self._operators, self._controller = operators, controller
        self._moves = NodeMoves()
        self._leaving: frozenset[str] = frozenset()
        self._refused = ""

    @property
    def leaving(self) -> frozenset[str]:
        """The nodes that are to be given back: no processor should be there."""
        return self._leaving

    @property
    def costs(self) -> NodeCosts:
        """How long nodes took to come and to go."""
        return self._moves.costs

    @property
    def refused(self) -> str:
        """Why the cluster did not give, or take back, a node; empty if it did."""
        return self._refused

    def look(
        self,
        now_s: float,
        processors: int,
        nodes: Sequence[str],
        executor_of: Mapping[str, str],
    ) -> bool:
        """Ask for nodes, and give back those that are empty; return whether one should be.

        So many *processors* are wanted, on *nodes* that stay. *executor_of* has the executors
        of all nodes, by name.
        """
        placed = {name: self._controller.placed(name) for name in self._operators}
        wanted = {name: self._controller.wanted(name) for name in self._operators}
        settled = settled_nodes(nodes, wanted, placed)
        self._moves.saw(now_s, there=list(executor_of), settled=settled)
        self._leaving &= executor_of.keys()
        try:
            released = self._step(now_s, processors, nodes)
            told = (*placed.values(), *wanted.values())
            used = {node for on in told for node, k in on.items() if k}
            self._negotiator.give_back([executor_of[node] for node in self._leaving - used])
        except EngineError as error:
            self._refused = str(error)  # the next look tries again
            return False
        self._refused = ""
        return released

    def _step(self, now_s: float, processors: int, nodes: Sequence[str]) -> bool:
        """Ask for nodes, or let one go; return whether one goes."""
        wanted = self._negotiator.wanted
        match self._scaling.step(now_s, processors, nodes, wanted=wanted, costs=self.costs):
            case AskFor(number):
                self._negotiator.ask(number)
                self._moves.asked(now_s, number - wanted)
            case Release(node):
                self._moves.released(now_s, node)
                self._leaving |= {node}
                return True
        return False
