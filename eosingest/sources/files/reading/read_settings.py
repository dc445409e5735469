"""Defines the settings of a spec with which files are read."""

from __future__ import annotations

from dataclasses import dataclass

from eosingest.spark.record_settings import RecordSettings


@dataclass(frozen=True, kw_only=True)
class ReadSettings(RecordSettings):
    """The settings of the spec with which files are read and records made; `schema` is DDL, or None to infer it.

    `refuses_unknown`: a field that the schema does not name ends the run before anything is sent. `inspects`: the text of the
    files is read once before anything is sent.
    """

    format: str
    options: dict[str, str]
    schema: str | None
    refuses_unknown: bool = False
    inspects: bool = True
