"""Kafka behind three narrow protocols: what the driver and the tasks may know of it, and the two clients that do it."""
