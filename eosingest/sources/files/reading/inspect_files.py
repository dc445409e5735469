"""The inspection of what a run will read (formats/inspection.py), spread over Spark's tasks: a job of plain Python.

Called by the launcher (spark/job.py) before the driver commits `running`. The tasks return what they found as values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from eosingest.errors import EosingestError
from eosingest.protocol.plan import Plan
from eosingest.sources.files.bytes.file_parts import FilePart
from eosingest.sources.files.formats.inspection import Check, Finding, error_of, inspect, look, needs_inspection, parts
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.reading.planned_files import pending_files
from eosingest.sources.files.reading.rows import ReadSettings

_HERE_BYTES, _HERE_FILES = 4 << 20, 100  # so little is inspected in the driver: a task takes longer to begin
_LOOKS = 16  # at objects, at a time
_TASKS_PER_SLOT = 4  # files are of unlike sizes: many small tasks end at about the same time


@dataclass(frozen=True)
class Inspection:
    """What each task does with its files, or parts of files. Pickled into the tasks. `check`: as for `inspection.inspect`."""

    format: str
    options: Mapping[str, str]
    split_size: int
    check: Check | None = None

    def __call__(self, files: Iterable[tuple[SourceFile, FilePart]]) -> Iterator[Finding | EosingestError]:
        """Yield what is wrong with the files. Errors (a file changed, cannot be read) are yielded, too, and not raised."""
        for file, part in files:
            try:
                found = inspect(file, self.format, self.options, self.split_size, part, self.check)
            except EosingestError as error:
                yield error
            else:
                if found is not None:
                    yield found


def inspect_pending(
    context: Any, read: ReadSettings, plan: Plan, *, as_lines: bool, slots: int, check: Check | None = None
) -> None:
    """Inspect the pending files. Raises FatalError for what was found, ChangedError for a file that changed.

    `as_lines`: the tasks of the run read the lines themselves, and find damage then; only names and first bytes are checked
    here. `slots`: how many tasks run at a time. `check` is asked of every file.
    """
    pending = pending_files(plan)
    refused = [found for found in _looks(pending, read) if found is not None]
    if refused:
        raise error_of(refused)
    files = [file for file in pending if check or needs_inspection(read.format, read.options, file.path)]
    if as_lines or not files:
        return
    inspection = Inspection(read.format, read.options, plan.split_size, check)
    pieces = [(file, part) for file in files for part in parts(file, read.format, read.options)]
    if sum(file.length for file in files) <= _HERE_BYTES and len(files) <= _HERE_FILES:
        results = list(inspection(pieces))
    else:
        tasks = min(len(pieces), _TASKS_PER_SLOT * slots)
        results = context.parallelize(pieces, tasks).mapPartitions(inspection).collect()
    findings: dict[str, Finding] = {}  # the first of each file
    for result in results:
        if isinstance(result, EosingestError):
            raise result
        findings.setdefault(result.file, result)
    if findings:
        raise error_of(list(findings.values()))


def _looks(files: Sequence[SourceFile], read: ReadSettings) -> Sequence[Finding | None]:
    """Look at each file; at objects many at a time, since each look waits for a store."""

    def one(file: SourceFile) -> Finding | None:
        return look(file, read.format, read.options)

    if not any(file.etag for file in files):
        return [one(file) for file in files]
    with ThreadPoolExecutor(_LOOKS) as pool:
        return list(pool.map(one, files))
