"""Tasks of Spark: relays between Kafka's records and hosts, and filters of duplicates."""
