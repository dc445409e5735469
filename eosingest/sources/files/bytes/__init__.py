"""Reads bytes of files: codecs, blocks, lines."""
