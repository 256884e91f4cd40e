"""A running application, and how others on its machine reach it: a Unix socket of its owner."""
