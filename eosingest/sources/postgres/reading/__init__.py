"""Reads a table: loaded only if its rows are needed."""
