"""The micro-benchmark of D-Storm: synthetic operators in a line, a diamond and a star.

Each operator draws random numbers (*c_s*), yields so many records per record (*s_s*) and runs
on so many processors (*t_s*). `linear`, `diamond` and `star` have the paper's defaults for load
and selectivity; `topology_app` makes others. The source sends numbered records.
"""

from sojourn_papers.apps.micro.shapes import SHAPES, topology_app

__all__ = ["SHAPES", "diamond", "linear", "star", "topology_app"]

linear = topology_app("linear")
diamond = topology_app("diamond")
star = topology_app("star")
