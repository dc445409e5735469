"""The audit of `verify`: receipts against the topic and the source. Pure but for what reads by Spark (scan.py, session.py)."""
