"""A topology: operators joined by streams, its files, and the rates that flow through it."""

from sojourn.topology.topology import Arrival, Dispatch, Operator, Route, Topology

__all__ = ["Arrival", "Dispatch", "Operator", "Route", "Topology"]
