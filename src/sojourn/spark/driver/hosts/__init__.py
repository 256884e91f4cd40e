"""The driver's side of hosts: starts their processes and controls them."""
