"""Implements Kafka in memory, for simulation and tests: cluster (cluster.py), partition (log.py), clients (clients.py)."""
