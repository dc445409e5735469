"""Finds why Spark failed, in one line: the innermost cause of a JVM error that has a readable message.

Spark wraps the exception of a task or a reader: "Job aborted …", an `UncheckedIOException`. The
message that a user needs is at the bottom of the "Caused by" chain. failures.py makes our errors from it.
"""

from __future__ import annotations

import re

# Except PYTHON_EXCEPTION, for any exception of a Python worker (pyspark 4.3), which says nothing of the data.
_ERROR_CLASS = re.compile(r"\[(?!PYTHON_EXCEPTION\])([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)?)\] (.+)")
# A throwable as Java prints it: at the beginning of a line, after "Caused by:", or after py4j's ": ".
_THROWABLE = re.compile(r"^(?:\s*Caused by: |: )?((?:[a-z]\w*\.)+[A-Z][\w$]*)(?:: (.*))?$")
_ADVICE = " If necessary set"  # Spark's advice names a setting that the user may not change here
_WRAPPERS = ("FAILED_READ_FILE", "_LEGACY_ERROR_TEMP_", "TASK_WRITE_FAILED")
_SPARK_WORDS = ("Job aborted", "org.apache.spark.SparkException")
_SQLSTATE = re.compile(r"(?<=\.) *SQLSTATE: \w+$")
_HDFS_NOISE = re.compile(r"file:(?://)?(?=/)")
# Throwables whose class name adds nothing to their message.
_PLAIN = (
    "AnalysisException",
    "Exception",
    "FileFormatException",
    "IOException",
    "ParquetDecodingException",
    "RuntimeException",
    "SparkException",
    "SparkRuntimeException",
)
# Failures that a retry cannot fix: caused by the data, by too little memory, or by a missing class.
_LASTING = re.compile(
    r"\bjava\.lang\.(?:\w*OutOfBounds|NegativeArraySize|ClassCast|NullPointer|NumberFormat|Arithmetic|IllegalArgument"
    r"|UnsupportedOperation)Exception\b|\bjava\.lang\.(?:OutOfMemory|StackOverflow|NoClassDefFound|UnsatisfiedLink)Error\b"
)


def text_of(error: BaseException) -> str:
    """Return the whole text of a JVM error with its causes: pyspark keeps the causes of some errors in another field."""
    return f"{error}\n{getattr(error, '_stackTrace', '') or ''}"


def is_lasting(text: str) -> bool:
    """Say whether every later run would fail in the same way."""
    return _ERROR_CLASS.search(text) is not None or _LASTING.search(text) is not None


def out_of_memory(text: str) -> bool:
    """Say whether the JVM ran out of heap memory."""
    return "java.lang.OutOfMemoryError" in text


def innermost(text: str) -> str:
    """Return the innermost cause that has a message, with the name of Spark's error class unless that only wraps another."""
    said = [found for found in map(_said, text.splitlines()) if found]
    for words in reversed(said):
        if not _is_wrapper(words):
            return _shortened(words)
    found = _ERROR_CLASS.search(text)
    if found is not None:
        return _shortened(found.group(0))
    return first_line(text)


def _said(line: str) -> str:
    """Return the message in a line of a stack trace; "" for a stack frame, or a throwable without a message."""
    found = _THROWABLE.match(line)
    if found is None:
        return ""
    name, words = found.group(1).rpartition(".")[2], (found.group(2) or "").strip()
    if not words or name == "ClassNotFoundException":  # the class's name only; the wrapping throwable says more
        return ""
    if _ERROR_CLASS.match(words) or name in _PLAIN:
        return words
    return f"{words} ({name})"


def _is_wrapper(words: str) -> bool:
    found = _ERROR_CLASS.match(words)
    if found is not None:
        return found.group(1).startswith(_WRAPPERS)
    return words.startswith(_SPARK_WORDS) or _THROWABLE.match(words) is not None


def _shortened(words: str) -> str:
    return _SQLSTATE.sub("", _HDFS_NOISE.sub("", words.split(_ADVICE, 1)[0])).rstrip()


def first_line(text: str) -> str:
    """Return the line of an error that gives the reason: for py4j, the one after "An error occurred while calling …"."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        return lines[1].removeprefix(": ")
    return lines[0] if lines else "no reason given"
