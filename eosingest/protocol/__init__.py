"""The exactly-once core: driver, task and what they agree on. It knows no Kafka client, no Spark and no kind of source."""
