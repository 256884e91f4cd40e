"""The state folder: checkpoints, states of keys, and locks, kept from one start to the next."""
