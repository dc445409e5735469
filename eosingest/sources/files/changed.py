"""The error for a file that is not the one that was listed any more, for all who read one: the inspection and the tasks.

Both compare the open file with the listing, before and after they read it.
"""

from __future__ import annotations

import os
from io import BufferedIOBase

from eosingest.errors import ChangedError
from eosingest.sources.files.fingerprint import is_as_listed
from eosingest.sources.files.source_file import SourceFile


def before_sending(file: SourceFile) -> ChangedError:
    """Make the error where nothing of the run was sent."""
    return ChangedError(
        f"{file.name}: changed after it was listed",
        code="changed-while-read",
        hint="nothing of this run was sent; run again once nothing writes to the source any more (source.min_age)",
    )


def while_sent(file: SourceFile) -> ChangedError:
    """Make the error where records of the file may have been committed."""
    return ChangedError(
        f"{file.name}: changed after it was listed",
        code="changed-while-read",
        hint="what was committed of it is kept; restore the file, or wait until nothing writes to it (source.min_age)",
        item=file.name,
    )


def is_changed(file: SourceFile, opened: BufferedIOBase) -> bool:
    """Say whether an open file has another length or modification time than it was listed with."""
    return not is_as_listed(file, os.fstat(opened.fileno()))
