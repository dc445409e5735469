"""A Kafka topic as a source: each record that read_committed shows in a range of offsets, once."""
