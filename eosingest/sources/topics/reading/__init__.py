"""Reads a topic: loaded only if its records are needed."""
