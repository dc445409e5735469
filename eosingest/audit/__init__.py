"""The audit of `verify`: receipts against the topic and the source. Only scan.py and session.py use Spark; the rest is pure."""
