"""Print how many tests of the last pytest run failed; exit 1 where none did, and it was something else that went wrong."""

from __future__ import annotations

import json
import sys
from pathlib import Path

LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")


def main() -> int:
    """Read pytest's own cache."""
    failed = json.loads(LAST_FAILED.read_text()) if LAST_FAILED.exists() else {}
    print(len(failed))
    return 0 if failed else 1


if __name__ == "__main__":
    sys.exit(main())
