"""Implements the command line: one module per command (verb), one renderer. No other package imports Typer or Rich.

    argv ─▶ main (Typer parses) ─▶ Action of a verb ─▶ perform ─▶ Result ─▶ Renderer ─▶ stdout, exit code
                                                         └─ notes, progress ─▶ Renderer ─▶ stderr

A verb imports its libraries when it is performed, so that `--help` imports neither pyspark nor a Kafka client nor pydantic.
"""
