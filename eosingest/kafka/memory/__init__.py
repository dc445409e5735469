"""A Kafka in memory, for simulation and tests: the cluster (cluster.py), one partition (log.py), and clients (clients.py)."""
