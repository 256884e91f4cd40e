"""Brokers and topics."""
