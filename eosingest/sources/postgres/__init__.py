"""A table of PostgreSQL as a source: read in ranges of its key, all of a run's ranges in one snapshot."""
