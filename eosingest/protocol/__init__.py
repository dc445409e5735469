"""Holds the exactly-once core: driver, task and their contracts. It knows no Kafka client, no Spark, no kind of source."""
