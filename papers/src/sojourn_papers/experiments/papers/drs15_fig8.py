"""DRS-15, Fig. 8: what is underestimated, against how much is computed."""

from sojourn_papers.experiments.network import NetworkCost
from sojourn_papers.experiments.record import About

EXPERIMENT = NetworkCost(
    about=About(
        source="DRS-15, Fig. 8",
        claim=(
            "On a chain of three operators the ratio of measured to estimated mean falls as "
            "the CPU time of a record grows from 0.567 to 309.1 ms."
        ),
        chosen=(
            "30 processors, 10 for each operator, are 60 % busy at all six workloads. The "
            "workloads are evenly spaced on the paper's logarithmic axis, between its two "
            "ends. The network is 1 ms per hop."
        ),
        caveat=(
            "Only meaningful on a real network: on the simulator the network is a constant "
            "that was chosen, and the curve follows from it."
        ),
    ),
    cpu_s=(0.000567, 0.002, 0.00705, 0.0249, 0.0878, 0.3091),
    processors=(10, 10, 10),
    busy=0.6,
    wire_s=0.001,
    roots=100_000,
)
