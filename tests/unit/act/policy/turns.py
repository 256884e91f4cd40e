"""An application that does what a test says of it, turn by turn, for a policy to decide on."""

from sojourn.decide.plan import HERE, Node, Plan
from sojourn.engine import Cost
from sojourn.knowledge import Knowledge
from sojourn.loop import Site, step
from sojourn.measure.observation import Moments, Observation, ObservedOperator
from sojourn.topology import Arrival, Operator, Topology

ONE_MACHINE = Site(nodes=[Node(HERE)])

__all__ = ["BUSY", "CHAIN", "ONE", "Turns", "seen"]

ONE = Topology(
    name="one",
    arrivals=(Arrival(name="in", per_s=1, into="a"),),
    operators=(Operator(name="a", service_s=1.0),),
)
"""As many records per second as processors are busy."""

CHAIN = Topology(
    name="chain",
    arrivals=(Arrival(name="in", per_s=1, into="a"),),
    operators=(
        Operator(name="a", service_s=1.0, emits={"b": 2}),
        Operator(name="b", service_s=0.5),
    ),
)
"""Both operators keep as many processors busy as records enter per second."""


BUSY = Topology(
    name="busy",
    arrivals=(Arrival(name="in", per_s=100, into="a"),),
    operators=(
        Operator(name="a", service_s=0.05, emits={"b": 2}),
        Operator(name="b", service_s=0.02),
    ),
)


def seen(topology, running, *, at_s, lasted_s, per_s, **told):
    """Return what *per_s* roots per second, served as fast as processors can, look like.

    *told*, by operator: *service_s*, *samples*, *backlog*, *busy* and *served_per_s*, where
    they are not what follows from that, *runs* and *missing* where fewer processors run than
    are wanted, *at_work* where it is known who is. *completed_per_s* and *commits* are what
    they say.
    """
    wanted, running = running, {**running, **told.get("runs", {})}
    reach = arriving(topology, running, per_s, told.get("service_s", {}))
    operators = {}
    for name, operator in topology.operator.items():
        service_s = told.get("service_s", {}).get(name, operator.service_s)
        served_per_s = min(reach[name], running[name] / service_s)
        served_per_s = told.get("served_per_s", {}).get(name, served_per_s)
        busy = served_per_s * service_s / running[name]
        samples = told.get("samples", {}).get(name, 1000 if served_per_s else 0)
        operators[name] = ObservedOperator(
            name=name,
            wanted=wanted[name],
            running=running[name],
            backlog=told.get("backlog", {}).get(name, 0),
            arrivals_per_s=reach[name],
            served_per_s=served_per_s,
            served=served_per_s * lasted_s,
            service=Moments(samples, samples * service_s, 2 * samples * service_s**2),
            wait=Moments(),
            utilisation=told.get("busy", {}).get(name, busy),
            missing=told.get("missing", {}).get(name, ""),
            at_work=told.get("at_work", {}).get(name),
        )
    return Observation(
        since_s=at_s - lasted_s,
        at_s=at_s,
        operators=operators,
        arrivals_per_s=per_s,
        completed_per_s=told.get("completed_per_s", per_s),
        commits=told.get("commits", 0),
    )


def arriving(topology, running, per_s, services_s):
    """Return what reaches each operator when those before it serve what they can."""
    part = per_s / topology.arrivals_per_s
    reach = dict.fromkeys(topology.operator, 0.0)
    for _ in range(100):  # around loops until nothing changes
        sent = {name: part * entering for name, entering in topology.entries.items()}
        for name, operator in topology.operator.items():
            capacity_per_s = running[name] / services_s.get(name, operator.service_s)
            for target, mean in operator.emits.items():
                sent[target] += min(reach[name], capacity_per_s) * mean
        reach = sent
    return reach


class Turns:
    """A loop around *policy* whose every turn lasts *every_s* and sees what it is told."""

    def __init__(self, policy, topology, allocation, *, every_s, pause_s=0.0, keep=240):
        self.policy, self.every_s, self.pause_s, self.at_s = policy, every_s, pause_s, 0.0
        self.knowledge = Knowledge(topology=topology, plan=Plan.here(allocation), keep=keep)

    def turn(self, per_s, **told):
        """Return the decision on *every_s* more of this load."""
        self.at_s += self.every_s
        return self._on(
            seen(
                self.knowledge.topology,
                self.knowledge.allocation,
                at_s=self.at_s,
                lasted_s=self.every_s,
                per_s=per_s,
                **told,
            )
        )

    def unusable(self, reason):
        """Return the decision on an interval that nothing is known of."""
        self.at_s += self.every_s
        since_s = self.at_s - self.every_s
        return self._on(Observation.unusable(since_s, self.at_s, reason))

    def turns(self, number, per_s, **told):
        """Return the decisions on as many turns that are all alike."""
        return [self.turn(per_s, **told) for _ in range(number)]

    def until(self, at_s, per_s, **told):
        """Let turns pass until *at_s* with no change, and return the decision then."""
        while self.at_s < at_s - self.every_s:
            assert self.turn(per_s, **told).kind == "hold"
        return self.turn(per_s, **told)

    def _on(self, observation):
        known, decision = step(self.knowledge, observation, self.policy, ONE_MACHINE)
        cost = None
        if decision.kind != "hold":
            changed = decision.before.changes(decision.after)
            cost = Cost(pause_s=self.pause_s, changed=changed)
        self.knowledge = known.did(decision, cost)
        return decision
