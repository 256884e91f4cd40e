"""The controller of hosts, and what they report to it."""
