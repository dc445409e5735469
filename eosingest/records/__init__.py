"""Checks records, and computes their receipts: limits of topics and brokers (limits.py), counts and checksums (checksum.py)."""
