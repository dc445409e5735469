"""Ingests data into Apache Kafka exactly once, in one-shot runs.

    spec.toml ─▶ Spec ─▶ Source ─▶ splits ─┐
                                           ├─▶ Plan ─▶ Spark: rows ─▶ key/value bytes (JVM) ─▶ Arrow batches ─┐
    offsets topic ─▶ committed positions ──┘                                                                 │
          ▲                                                              one Spark task ◀────────────────────┘
          └──── records + offset records, one transaction ◀── begin · produce… · offset records last · commit
    after the job: read the offsets topic back ─▶ every split done? ─▶ complete record ─▶ report, exit code

`app/run.py` wires the parts of a run; `protocol/driver.py` has its steps from start to end; `protocol/task.py` sends records.

The names of the Python API (docs/python.md) are imported on first use, because Spark's executors import this package, too.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eosingest.api.verbs import plan, preview, run, status, verify
    from eosingest.errors import (
        ActiveRunError,
        ChangedError,
        EosingestError,
        FatalError,
        FencedError,
        IncompleteError,
        InterruptedRunError,
        MismatchError,
        NoSuchJobError,
        SpecError,
        SpecProblem,
        TemporaryError,
    )
    from eosingest.report.model import PlanReport, PreviewReport, RunReport, ShownRecord, StatusReport, VerifyReport
    from eosingest.report.progress import AuditProgress, Progress
    from eosingest.spec.model import Spec

__version__ = "0.1.0"

__all__ = [
    "ActiveRunError",
    "AuditProgress",
    "ChangedError",
    "EosingestError",
    "FatalError",
    "FencedError",
    "IncompleteError",
    "InterruptedRunError",
    "MismatchError",
    "NoSuchJobError",
    "PlanReport",
    "PreviewReport",
    "Progress",
    "RunReport",
    "ShownRecord",
    "Spec",
    "SpecError",
    "SpecProblem",
    "StatusReport",
    "TemporaryError",
    "VerifyReport",
    "__version__",
    "plan",
    "preview",
    "run",
    "status",
    "verify",
]

_VERBS = ("plan", "preview", "run", "status", "verify")

# Log records of librdkafka and this package go only to handlers that an application or the command line adds to this logger.
logging.getLogger("eosingest").addHandler(logging.NullHandler())
logging.getLogger("eosingest").propagate = False


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _VERBS:
        home = "api.verbs"
    elif name == "Spec":
        home = "spec.model"
    else:
        home = "report.progress" if name.endswith("Progress") else "report.model"
        home = "errors" if name.endswith(("Error", "Problem")) else home
    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
