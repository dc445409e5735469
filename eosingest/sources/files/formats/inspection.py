"""Inspects files before anything is sent, for damage that Spark's or Hadoop's readers would silently read as data.

Between the plan and the job (reading/inspect_files.py):

    look      every file: do its name and first bytes agree, and can it be read at all? Of Avro: is its header valid?
    parts     the unit that a task inspects: a file, or a range of its bytes if its lines can be checked separately
    inspect   files that need it, in tasks: read once, through every check that format and name require

A finding ends the run: nothing was sent.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader

from eosingest.errors import FatalError, listed
from eosingest.sources.files.bytes import codecs, file_parts, magic
from eosingest.sources.files.bytes.file_parts import WHOLE, FilePart
from eosingest.sources.files.formats import avro_container
from eosingest.sources.files.formats.registry import FORMATS
from eosingest.sources.files.formats.text_checks import BadTextError, can_be_parted, check_text, needs_text_check
from eosingest.sources.files.formats.unknown_fields import KnownFields
from eosingest.sources.files.formats.whole import LONGEST, is_one_value
from eosingest.sources.files.listing.errors import before_sending, opened_as_listed
from eosingest.sources.files.listing.file_tree import unreadable
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.storage.port import UnreachableError

TEXT_FORMATS = tuple(name for name, entry in FORMATS.items() if entry.is_text)
_CONTAINERS = tuple(name for name, entry in FORMATS.items() if entry.is_in_blocks)
_NAMED_AT_MOST = 20
_CORRECT = "correct it, or move it away"
# Reads the decompressed pieces of a file; raises BadTextError for the first error in them.
Check = Callable[[Iterable[bytes]], None]


@dataclass(frozen=True)
class Finding:
    """Why a file cannot be read exactly: `where` in it (a byte, a line, or ""), the `message`, and the remedy (`hint`)."""

    file: str
    where: str
    message: str
    hint: str = _CORRECT

    def __str__(self) -> str:
        """Return the text for an error message."""
        return ": ".join(part for part in (self.file, self.where, self.message) if part)


def needs_inspection(format: str, options: Mapping[str, str], path: str) -> bool:
    """Say whether a file must be read before the run."""
    # A value has a maximum length.
    is_packed_value = _codec(format, path) is not None and is_one_value(format, options)
    return format in _CONTAINERS or is_packed_value or needs_text_check(format)


def look(file: SourceFile, format: str, options: Mapping[str, str]) -> Finding | None:
    """Check a file's length, name and first bytes; return the problem, or None. Raises the errors of `inspect`."""
    if format in _CONTAINERS:
        return _look_at_header(file)
    codec = _codec(format, file.coded_path)
    if codec is None and is_one_value(format, options) and file.length > LONGEST:
        return _too_long(file)
    return _look_at_text(file, codec) if format in TEXT_FORMATS else None


def _look_at_header(file: SourceFile) -> Finding | None:
    with opened_to_check(file, avro_container.HEAD_BYTES) as opened:
        try:
            avro_container.read_header(opened)
        except codecs.DamagedError as damaged:
            return _finding(file, damaged)
    return None


def _look_at_text(file: SourceFile, codec: str | None) -> Finding | None:
    with opened_to_check(file, magic.HEAD_BYTES) as opened:
        head = opened.read(magic.HEAD_BYTES)
    refused = magic.refusal(file.coded_path, codec, head)
    if refused is not None:
        message, hint = refused
        if file.compression is not None:
            message = message.replace("by its name", "by source.compression")
            hint = "give the files that are not so compressed a separate job, or leave them out by a narrower path"
        return Finding(file.name, "", message, hint)
    try:
        if codec in ("gzip", "deflate"):
            next(codecs.pieces(io.BytesIO(head), file.coded_path), b"")
    except codecs.DamagedError as damaged:
        if file.length <= len(head) or damaged.hint:
            return _finding(file, damaged)
    return None


def parts(file: SourceFile, format: str, options: Mapping[str, str]) -> list[FilePart]:
    """Return the parts of a file that can be inspected separately."""
    if format in _CONTAINERS or codecs.codec_of(file.coded_path) is not None or not can_be_parted(format, options):
        return [WHOLE]
    return file_parts.of_length(file.length)


def inspect(
    file: SourceFile,
    format: str,
    options: Mapping[str, str],
    split_size: int | None = None,
    part: FilePart = WHOLE,
    check: Check | None = None,
    fields: KnownFields | None = None,
) -> Finding | None:
    """Read a file, or a part of it, once, through all the checks it needs; return the first problem, or None.

    `split_size`, in bytes, is the size by which the file will be cut; None: it is not cut. `check` replaces the checks of the
    format's text. `fields`: see `json_scan.JsonScan`.

    Raises ChangedError if the file is not the one that was listed, FatalError if it may not be read.
    """
    if format in _CONTAINERS:
        return _inspect_blocks(file, split_size)
    with opened_to_check(file) as opened:
        try:
            pieces = codecs.pieces(opened, file.coded_path) if part == WHOLE else file_parts.pieces(opened, part)
            if check is not None:
                check(pieces)
            elif needs_text_check(format):
                begun = check_text(pieces, format, options, from_start=part.start == 0, fields=fields)
                if not begun and part != WHOLE:  # the content begins in a later part, which cannot know that
                    return inspect(file, format, options, split_size, fields=fields)
            length = sum(map(len, pieces))
            if is_one_value(format, options) and length > LONGEST:
                return _too_long(file)
        except BadTextError as bad:
            line = None if bad.line is None else bad.line + file_parts.lines_before(opened, part)
            where = "" if line is None else f"line {line:,}"
            return Finding(file.name, where, bad.message, bad.hint or _CORRECT)
        except codecs.DamagedError as damaged:
            return _finding(file, damaged)
    return None


def _inspect_blocks(file: SourceFile, split_size: int | None) -> Finding | None:
    with opened_to_check(file) as opened:
        try:
            avro_container.prove(opened, is_cut=_is_cut(file, split_size))
        except codecs.DamagedError as damaged:
            return _finding(file, damaged)
    return None


def _is_cut(file: SourceFile, split_size: int | None) -> bool:
    return split_size is not None and file.splittable and file.length > split_size


def _codec(format: str, path: str) -> str | None:
    """Return the codec that decompresses a file when it is read."""
    return codecs.codec_of(path) if format in TEXT_FORMATS else None


def _too_long(file: SourceFile) -> Finding:
    message = f"it has more than {LONGEST:,} bytes, and a file that is one value can have no more"
    return Finding(file.name, "", message, "read it as another format, or move it away")


def _finding(file: SourceFile, damaged: codecs.DamagedError) -> Finding:
    where = "" if damaged.at is None else f"near byte {damaged.at:,}"
    return Finding(file.name, where, damaged.message, damaged.hint or _CORRECT)


def error_of(findings: Sequence[Finding]) -> FatalError:
    """Make the single error of a run for all findings."""
    named = listed([str(finding) for finding in findings], _NAMED_AT_MOST, separator="; ", rest="; and {} more files")
    ways_out = "; ".join(dict.fromkeys(finding.hint for finding in findings[:_NAMED_AT_MOST]))
    return FatalError(
        named,
        code="bad-data",
        hint=f"nothing of this run was sent; {ways_out}; then run again",
    )


@contextmanager
def opened_to_check(file: SourceFile, until: int | None = None) -> Iterator[BufferedReader]:
    """Open a file, which must be the one that was listed until it is read; raises the errors of `inspect`.

    Also raises TemporaryError if the file's store does not answer.
    """
    try:
        with opened_as_listed(file, before_sending, until) as opened:
            yield opened
    except UnreachableError as error:
        raise error.error() from error
    except OSError as error:
        raise unreadable(file.path, error) from error
