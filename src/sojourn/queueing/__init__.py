"""Formulas of queueing theory that measuring needs, too: Erlang's, and shared cores."""
