"""This machine and this process: Java, folders, the host lock, signals, fail points, the errors of the last run."""
