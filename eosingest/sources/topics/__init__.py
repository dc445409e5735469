"""Reads a Kafka topic: each record that read_committed shows in a range of offsets, once."""
