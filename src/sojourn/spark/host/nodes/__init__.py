"""Agents of nodes, as a host reaches them."""
