"""Reads a table of PostgreSQL as a source: in ranges of its key, all ranges of a run in one snapshot."""
