"""Reads and writes the offsets topic: its records (record.py), a job's state in them (state.py), the topic (topic.py)."""
