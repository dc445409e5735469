"""A Kafka in memory, for simulation and tests: the log (log.py) and clients of it (clients.py)."""
