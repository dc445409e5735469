"""The offsets topic: what its records say (record.py), how a job's state is read from it (state.py), the topic (topic.py)."""
