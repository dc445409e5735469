"""`python -m tests.support.fetch`: what tests need is fetched before them, once."""

from __future__ import annotations

import sys
from collections.abc import Callable

from eosingest.errors import TemporaryError
from eosingest.spark import avro_jar
from tests.support import kafka_tools, registry

_TRIES = 3


def main() -> None:
    """Fetch it, each part in three tries; nothing where it is there."""
    for fetch in (lambda: avro_jar.jars({}), registry.home, kafka_tools.tools_jar):
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
