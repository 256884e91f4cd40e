"""The performance model: predicts latency of operators and of the network."""
