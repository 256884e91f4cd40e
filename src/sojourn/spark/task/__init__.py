"""Code that runs in tasks of Spark: relays between Kafka and hosts, and deduplication."""
