"""`python -m tests.support.fetch`: what tests need is fetched before them, once; Hadoop's client of S3 alone is some 690 MB."""

from __future__ import annotations

import sys
from collections.abc import Callable

from eosingest.errors import TemporaryError
from eosingest.sources.files.reading import hadoop_s3
from eosingest.spark import avro_jar
from tests.support import kafka_tools, registry

_TRIES = 3


def main() -> None:
    """Fetch it, each part in three tries; nothing where it is there."""
    for fetch in (lambda: hadoop_s3.jars({}), lambda: avro_jar.jars({}), registry.home, kafka_tools.tools_jar):
        _tried(fetch)


def _tried(fetch: Callable[[], object]) -> None:
    for left in reversed(range(_TRIES)):
        try:
            fetch()
            return
        except TemporaryError as error:
            print(error.message, file=sys.stderr)
            if not left:
                raise


if __name__ == "__main__":
    main()
