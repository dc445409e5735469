"""The command line: the only place that knows Typer and Rich. One file per verb, one renderer for text and JSON.

    argv ─▶ main (Typer parses) ─▶ Action of a verb ─▶ perform ─▶ Result ─▶ Renderer ─▶ stdout, exit code
                                                         └─ notes, progress ─▶ Renderer ─▶ stderr

What a verb needs is imported when it is performed: `--help` loads neither Spark nor Kafka nor pydantic.
"""
