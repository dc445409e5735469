"""What a user is told of Spark's failures: the innermost cause that says something, in one line."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from eosingest.spark import failures
from eosingest.spark.causes import innermost, is_lasting

_TASK = """An error occurred while calling o1.collect.
: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///d/a.parquet.  \
SQLSTATE: KD001
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError(QueryExecutionErrors.scala:863)
"""
_JOB = """An error occurred while calling o1.load.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times: \
org.apache.spark.SparkException: [FAILED_READ_FILE.CANNOT_READ_FILE_FOOTER] Encountered error while reading file \
file:/d/a.parquet.
"""
CASES = [
    (
        _TASK
        + "Caused by: java.lang.RuntimeException: file:/d/a.parquet is not a Parquet file. Expected magic number\n",
        "/d/a.parquet is not a Parquet file. Expected magic number",
    ),
    (
        _JOB
        + "Caused by: org.apache.parquet.crypto.ParquetCryptoRuntimeException: No keys available\n\nDriver stacktrace:\n",
        "No keys available (ParquetCryptoRuntimeException)",
    ),
    (
        _TASK + "Caused by: org.apache.parquet.hadoop.BadConfigurationException: Class a.BrotliCodec was not found\n"
        "Caused by: java.lang.ClassNotFoundException: a.BrotliCodec\n",
        "Class a.BrotliCodec was not found (BadConfigurationException)",
    ),
    (
        _TASK + "Caused by: java.io.IOException: Error reading file: file:/d/a.orc\n"
        "Caused by: java.io.EOFException: Read past end of RLE integer\n",
        "Read past end of RLE integer (EOFException)",
    ),
    (
        _TASK + "Caused by: java.lang.RuntimeException: native zStandard library not available: this version was built"
        " without zstd support.\n",
        "native zStandard library not available: this version was built without zstd support.",
    ),
    (
        "An error occurred while calling o1.collect.\n: org.apache.spark.SparkException: Job aborted due to stage failure: x\n"
        "Caused by: org.apache.spark.SparkArithmeticException: [CAST_OVERFLOW] The value 5 overflows. If necessary set"
        ' "spark.sql.ansi.enabled" to "false". SQLSTATE: 22003\n',
        "[CAST_OVERFLOW] The value 5 overflows.",
    ),
    (
        "[CAST_INVALID_INPUT] The value 'x' cannot be cast.\nJVM stacktrace:",
        "[CAST_INVALID_INPUT] The value 'x' cannot be cast.",
    ),
    (_TASK, "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file /d/a.parquet."),
    (
        "An error occurred while calling o1.x.\n: java.lang.OutOfMemoryError: Java heap space\n",
        "Java heap space (OutOfMemoryError)",
    ),
    ("", "no reason given"),
]


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[str(number) for number in range(len(CASES))])
def test_the_innermost_cause_is_said(text: str, expected: str) -> None:
    assert innermost(text) == expected


@pytest.mark.parametrize(
    ("text", "lasting"),
    [
        (_TASK, True),
        (": java.lang.OutOfMemoryError: Java heap space", True),
        ("Caused by: java.lang.NegativeArraySizeException: -5", True),
        ("Caused by: java.lang.NoClassDefFoundError: a/B", True),
        ("Job aborted due to stage failure: ExecutorLostFailure (executor 1 exited)", False),
        ("java.lang.IllegalStateException: SparkContext has been shutdown", False),
        ("java.io.IOException: No space left on device", False),
    ],
)
def test_what_comes_again_is_told_from_what_may_not(text: str, lasting: bool) -> None:
    assert is_lasting(text) is lasting


def test_a_hint_speaks_of_pinned_expressions() -> None:
    error = failures.of_a_run(
        PySparkException("[CAST_INVALID_INPUT] The value 'x' cannot be cast to INT."), None, lambda: "a", None
    )
    assert "An expression is pinned" in error.hint
