"""The command line: the only package that imports Typer and Rich. One module per command (verb), one renderer.

    argv ─▶ main (Typer parses) ─▶ Action of a verb ─▶ perform ─▶ Result ─▶ Renderer ─▶ stdout, exit code
                                                         └─ notes, progress ─▶ Renderer ─▶ stderr

A verb imports what it needs when it is performed: `--help` imports neither pyspark nor a Kafka client nor pydantic.
"""
