"""Topology files: YAML or JSON, `format: 1` (docs/reference/topology-file.md)."""

from sojourn.topology.file.reader import FORMAT, parse_topology, read_topology
from sojourn.topology.file.writer import topology_document, topology_text, write_topology

__all__ = [
    "FORMAT", "parse_topology", "read_topology", "topology_document", "topology_text",
    "write_topology",
]  # fmt: skip
