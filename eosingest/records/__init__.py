"""What a record may be, and its receipt: the limits of topics and brokers (limits.py), counts and checksums (checksum.py)."""
