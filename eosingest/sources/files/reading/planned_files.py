"""Returns the items of a plan as files, and checks that they are as listed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from eosingest.protocol.plan import Plan
from eosingest.sources.files.listing.errors import before_sending
from eosingest.sources.files.listing.source_file import SourceFile, as_file


def planned_files(plan: Plan) -> list[SourceFile]:
    """Return all files of the plan, done ones too, in its order."""
    return [as_file(entry.item) for entry in plan.items]


def pending_files(plan: Plan) -> list[SourceFile]:
    """Return the files that have to be read, in the plan's order."""
    return [as_file(entry.item) for entry in plan.pending_items]


_AT_A_TIME = 16


@dataclass(frozen=True)
class AsListed:
    """Checks that files are as listed (`spark.direct.Confirm`). Pickled and sent to the tasks."""

    files: tuple[SourceFile, ...]

    def __call__(self) -> None:
        """Raise ChangedError that names a file which is no longer the listed one, or is gone; OSError if it is unreachable."""
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            try:
                for _ in pool.map(_refuse_changed, self.files):
                    pass
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise


def _refuse_changed(file: SourceFile) -> None:
    if not file.storage.is_as_listed(file):
        raise before_sending(file)
