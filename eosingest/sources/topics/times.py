"""Parses the points in time in `from` and `to` of a topic: RFC 3339, to the millisecond, as Kafka's timestamps. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


def milliseconds(text: str) -> int:
    """Return milliseconds since 1970, rounded up. Raises ValueError for a text that is no time, or has no offset from UTC."""
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError("it has no offset from UTC")
    return -((_EPOCH - found) // timedelta(milliseconds=1))
