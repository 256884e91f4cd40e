"""Native operators: projections and aggregations that Spark runs itself, without a host.

Projections next to functions are steps of the query of their part
(`spark/driver/native/query`). Native operators have no processors, so they cannot be
scaled while they run: a projection has one task for each partition of its topic, an aggregation
one more for each partition of its state. The first committed batch fixes the number of state
partitions.

A record that cannot be read becomes a dead letter; for an aggregation, a separate query writes
the dead letters. An expression that raises stops the query, and stops it again after each
restart: use `try_cast`, `try_divide` and the like where input may be bad. The time zone of
expressions is UTC.
"""
