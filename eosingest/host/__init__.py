"""This machine and this process: Java, folders, the lock of a host, signals, fail points, what the last run said."""
