"""Why Spark failed, in one line: the innermost cause in an error of the JVM that says something to a person.

Spark wraps what a task or a reader says: "Job aborted …", `FAILED_READ_FILE.NO_HINT`, an `UncheckedIOException`. What a user
needs is at the bottom of the "Caused by" chain. Below failures.py, which makes errors of ours from them.
"""

from __future__ import annotations

import re

_ERROR_CLASS = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)?)\] (.+)")
# A throwable as Java prints it at the beginning of a line, behind "Caused by:" or py4j's ": ".
_THROWABLE = re.compile(r"^(?:\s*Caused by: |: )?((?:[a-z]\w*\.)+[A-Z][\w$]*)(?:: (.*))?$")
_ADVICE = " If necessary set"  # to a setting that is not the user's here
_WRAPPERS = ("FAILED_READ_FILE", "_LEGACY_ERROR_TEMP_", "TASK_WRITE_FAILED", "CANNOT_READ_FILE_FOOTER")
_SPARK_WORDS = ("Job aborted", "org.apache.spark.SparkException")
_SQLSTATE = re.compile(r"(?<=\.) *SQLSTATE: \w+$")
_HDFS_NOISE = re.compile(r"file:(?://)?(?=/)")
# Throwables whose name adds nothing to what they say.
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
# What a task fails with again however often it is run: of the data, of the memory, or of a class that is not there.
_LASTING = re.compile(
    r"\bjava\.lang\.(?:\w*OutOfBounds|NegativeArraySize|ClassCast|NullPointer|NumberFormat|Arithmetic|IllegalArgument"
    r"|UnsupportedOperation)Exception\b|\bjava\.lang\.(?:OutOfMemory|StackOverflow|NoClassDefFound|UnsatisfiedLink)Error\b"
)


def text_of(error: BaseException) -> str:
    """Return all that an error of the JVM says: pyspark keeps the causes of some apart from their text."""
    return f"{error}\n{getattr(error, '_stackTrace', '') or ''}"


def is_lasting(text: str) -> bool:
    """Say whether what Spark failed with would come again in any later run."""
    return _ERROR_CLASS.search(text) is not None or _LASTING.search(text) is not None


def out_of_memory(text: str) -> bool:
    """Say whether the JVM's heap was too small."""
    return "java.lang.OutOfMemoryError" in text


def innermost(text: str) -> str:
    """Return the innermost cause that has a text; an error class of Spark's keeps its name, unless it only wraps another."""
    said = [found for found in map(_said, text.splitlines()) if found]
    for words in reversed(said):
        if not _is_wrapper(words):
            return _shortened(words)
    found = _ERROR_CLASS.search(text)
    if found is not None:
        return _shortened(found.group(0))
    return first_line(text)


def _said(line: str) -> str:
    """Return what a line of a stack trace says, "" where it names a place in the code, or a throwable without a word."""
    found = _THROWABLE.match(line)
    if found is None:
        return ""
    name, words = found.group(1).rpartition(".")[2], (found.group(2) or "").strip()
    if not words or name == "ClassNotFoundException":  # no more than a name; what wraps it says what for
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
    """Return the line of an error that says why: of py4j's, the one behind "An error occurred while calling …"."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        return lines[1].removeprefix(": ")
    return lines[0] if lines else "no reason given"
