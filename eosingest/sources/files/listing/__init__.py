"""Finds the files of a source, names them, and determines their versions."""
