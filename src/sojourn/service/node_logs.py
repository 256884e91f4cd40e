"""Where the processors on the nodes of a cluster print to."""

import socket
from collections.abc import Sequence
from pathlib import Path

from sojourn.engine import NodeHealth
from sojourn.errors import BadInput, EngineError
from sojourn.topology.check import shown

__all__ = ["node_logs", "node_logs_hint"]


def node_logs(nodes: Sequence[NodeHealth], name: str) -> Path:
    """Return the folder with the logs of the node *name*, if it is on this machine.

    Raise `BadInput` if there is no such node, and `EngineError`, which tells where they are, if
    they are on another machine.
    """
    node = next((node for node in nodes if node.name == name), None)
    if node is None:
        names = ", ".join(node.name for node in nodes)
        known = f"there are: {names}" if names else "it runs on one machine: leave out --node"
        raise BadInput(f"there is no node {shown(name)}; {known}")
    if not node.logs:
        raise EngineError(
            f"{name} has not reported the folder of its logs; {node.reason or 'try again'}"
        )
    folder = Path(node.logs)
    # a container may have the same path, and machines may have the same name
    if node.machine != socket.gethostname() or not folder.is_dir():
        raise EngineError(
            f"the logs of {name} are on {node.machine}, in {folder}; read them there"
        )
    return folder


def node_logs_hint(nodes: Sequence[NodeHealth]) -> str:
    """Return how to see what is printed on *nodes*; empty on one machine."""
    names = [node.name for node in nodes if node.logs]
    if not names:
        return ""
    return f"the output of functions is on the nodes: add --node {' or '.join(names)}"
