"""Handles this machine and this process: Java, folders, host lock, signals, fail points, the errors of the last run."""
