"""`python -m tests.support.fetch`: what is large is fetched before the tests that need it: Hadoop's client of S3, 558 MB."""

from __future__ import annotations

import sys

from eosingest.errors import TemporaryError
from eosingest.sources.files.reading import hadoop_s3

_TRIES = 3


def main() -> None:
    """Fetch it, in three tries; nothing where it is there."""
    for left in reversed(range(_TRIES)):
        try:
            hadoop_s3.jars({})
            return
        except TemporaryError as error:
            print(error.message, file=sys.stderr)
            if not left:
                raise


if __name__ == "__main__":
    main()
