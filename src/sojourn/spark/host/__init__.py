"""The host of a part: its queues, open records and states, and its processors."""
