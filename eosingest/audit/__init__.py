"""Compares receipts with the topic and the source, for `verify`. Of its modules only scan.py and session.py use Spark."""
