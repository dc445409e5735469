"""Gives driver and tasks three narrow interfaces to Kafka (ports.py), and implements them with two clients."""
