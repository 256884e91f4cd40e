"""Formulas of queueing theory, used by model and measurement: Erlang's, and shared cores."""
