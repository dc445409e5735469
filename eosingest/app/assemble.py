"""Makes, from a Spec, the parts that the commands (verbs) work with.

    Spec ─▶ assemble ─▶ Parts: source, clients, settings of the driver and of Spark ─▶ run.py, inspect.py, verify.py, preview.py

settings.py and connection.py make the parts; the verbs' modules use them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from eosingest.app.connection import Connection, connected, refuse_unusable_properties
from eosingest.app.settings import NO_OPTIONS, RunOptions, driver_settings, scan_of, source_of, spark_log_file
from eosingest.host.interruption import never
from eosingest.kafka.config import ClientSettings
from eosingest.protocol.driver_contract import DriverSettings
from eosingest.protocol.plan import Plan, make_plan
from eosingest.protocol.source import Purpose, Source
from eosingest.records.encoding import Encoding
from eosingest.report.progress import Observer, RecordingObserver
from eosingest.spec import Spec

if TYPE_CHECKING:
    from eosingest.spark.job import SparkSettings


@dataclass(frozen=True)
class Parts:
    """The parts that a verb works with. `observer` shows notes and keeps them for the report; `check` ends waits by raising."""

    spec: Spec
    source: Source
    observer: RecordingObserver
    check: Callable[[], None]

    @cached_property
    def log_file(self) -> Path | None:
        """The log file of Spark in this process; see `settings.spark_log_file`."""
        return spark_log_file(self.spec.name)

    def connected(self, *, start: bool = True) -> AbstractContextManager[Connection]:
        """See `connection.connected`; `start`: the embedded broker may be started."""
        return connected(self.spec, self.observer, self.check, start=start)

    def first_plan(self) -> Plan:
        """Return the plan as if nothing had been sent, for display only."""
        snapshot = self.source.plan(purpose=Purpose.SHOW)
        return make_plan(self.source, {}, self.spec.source.split_size, snapshot)

    def driver_settings(self, kafka: Connection, options: RunOptions = NO_OPTIONS) -> DriverSettings:
        """See `settings.driver_settings`."""
        return driver_settings(self.spec, kafka.client.bootstrap_servers, options)

    def spark_settings(
        self,
        client: ClientSettings,
        note: Callable[[str], None],
        encodings: Mapping[str, Encoding] = MappingProxyType({}),
    ) -> SparkSettings:
        """See `spark.settings.spark_settings`. Imports pyspark."""
        from eosingest.spark.settings import spark_settings

        scan = scan_of(self.spec, encodings)
        return spark_settings(self.spec, client, scan, self.check, self.log_file, note, encodings)


def assemble(spec: Spec, observer: Observer, check: Callable[[], None] = never, *, asks_brokers: bool = True) -> Parts:
    """Make the parts. Nothing is connected, listed or started.

    Raises SpecError for a path that the source cannot use, and, if `asks_brokers`, for client properties that cannot be used.
    """
    if asks_brokers:
        refuse_unusable_properties(spec)
    return Parts(spec, source_of(spec, check), RecordingObserver(observer), check)
