"""Networks that several tests hold against theory."""

from sojourn.topology import Arrival, Operator, Topology

# Two streams enter, records overtake each other, wait on the wire, and come back.
JACKSON = Topology(
    name="jackson",
    arrivals=(
        Arrival(name="many", per_s=0.8, into={"parse": 0.75, "check": 0.25}),
        Arrival(name="few", per_s=0.2, into="check"),
    ),
    operators=(
        Operator(
            name="parse", service_s=0.6, route="one_of", emits={"check": 0.6, "store": 0.4}
        ),
        Operator(
            name="check",
            service_s=2.0,
            speed=2.0,
            transfer_s=0.4,
            route="one_of",
            emits={"parse": 0.3, "check": 0.1, "store": 0.5},
        ),
        Operator(name="store", service_s=0.7, transfer_s=0.1),
    ),
)
