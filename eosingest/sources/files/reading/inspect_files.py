"""Inspects the files that a run will read (formats/inspection.py), in tasks.

The launcher (spark/job.py) calls it before the driver commits `running`, `check --read` (app/read_check.py) without Spark. The
tasks return their findings as values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from eosingest.protocol.plan import Plan
from eosingest.sources.files.bytes.file_parts import FilePart
from eosingest.sources.files.formats.inspection import Check, Finding, error_of, inspect, look, needs_inspection, parts
from eosingest.sources.files.formats.text_checks import needs_text_check
from eosingest.sources.files.formats.unknown_fields import KnownFields, known_fields
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.reading.planned_files import pending_files
from eosingest.sources.files.reading.read_settings import ReadSettings
from eosingest.spark.scan import Tasks

_HERE_BYTES, _HERE_FILES = 4 << 20, 100  # up to this much is inspected in the driver: a task takes longer to begin
_LOOKS = 16  # objects at a time


@dataclass(frozen=True)
class Inspection:
    """The function of a task, for its files or their parts. Pickled and sent to tasks. `check` and `fields`: as in
    `inspection.inspect`.
    """

    format: str
    options: Mapping[str, str]
    split_size: int
    check: Check | None = None
    fields: KnownFields | None = None

    def __call__(self, files: Iterable[tuple[SourceFile, FilePart]]) -> Iterator[Finding]:
        """Yield the findings. Raises ChangedError for a file that changed, TemporaryError if it cannot be read."""
        for file, part in files:
            found = inspect(file, self.format, self.options, self.split_size, part, self.check, self.fields)
            if found is not None:
                yield found


def inspect_pending(
    tasks: Tasks, read: ReadSettings, plan: Plan, *, as_lines: bool, check: Check | None = None
) -> None:
    """Inspect the pending files. Raises FatalError for findings, ChangedError for a file that changed.

    `as_lines`: the tasks of the run read the lines themselves, and find damage then; only names and first bytes are checked
    here. `check` is applied to every file.
    """
    pending = pending_files(plan)
    refused = [found for found in _looks(pending, read) if found is not None]
    if refused:
        raise error_of(refused)
    files = [file for file in pending if check or needs_inspection(read.format, read.options, file.coded_path)]
    is_left_out = not read.inspects and (check is not None or needs_text_check(read.format))
    if as_lines or not files or is_left_out:
        return
    inspection = Inspection(read.format, read.options, plan.split_size, check, _fields(read))
    pieces = [(file, part) for file in files for part in parts(file, read.format, read.options)]
    if sum(file.length for file in files) <= _HERE_BYTES and len(files) <= _HERE_FILES:
        results = list(inspection(pieces))
    else:
        results = tasks(inspection, pieces)
    findings: dict[str, Finding] = {}  # the first of each file
    for result in results:
        findings.setdefault(result.file, result)
    if findings:
        raise error_of(list(findings.values()))


def _fields(read: ReadSettings) -> KnownFields | None:
    """Return the only fields that JSON may have, None if there may be others."""
    if read.format != "json" or read.schema is None or not read.refuses_unknown:
        return None
    return known_fields(read.schema)


def _looks(files: Sequence[SourceFile], read: ReadSettings) -> Sequence[Finding | None]:
    """Check the first bytes of each file; of objects many at a time, since each check waits for a store."""

    def one(file: SourceFile) -> Finding | None:
        return look(file, read.format, read.options)

    if not any(file.etag for file in files):
        return [one(file) for file in files]
    with ThreadPoolExecutor(_LOOKS) as pool:
        return list(pool.map(one, files))
