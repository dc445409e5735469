"""Reads files, by Spark or by the tasks; loaded only when rows are needed."""
