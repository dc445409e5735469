"""What a job in one process meets: a Kafka in memory whose network loses nothing, and a fail point that ends it like a kill."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from eosingest.host import failpoints
from eosingest.host.interruption import Interruption
from eosingest.kafka.ports import LogRecord
from eosingest.protocol.driver_contract import Runtime
from eosingest.protocol.task_contract import TaskSettings
from eosingest.protocol.transactional_ids import task_id
from eosingest.report.progress import Progress
from tests.support.memory_kafka.clients import MemoryAdmin, MemoryProducer, MemoryReader
from tests.support.memory_kafka.cluster import Cluster


class MemoryKafka:
    """Such a Kafka, and a clock that only waiting moves (`control_log.DriverKafka`)."""

    def __init__(self, offsets_topic: str, decided: Callable[..., None] = lambda *_: None) -> None:
        """`decided` is called as `Cluster` says."""
        self.time = 1_800_000_000.0
        self.cluster = Cluster(self.now, decided=decided)
        self.admin = MemoryAdmin(self.cluster, self)
        self._offsets_topic = offsets_topic

    def now(self) -> float:
        return self.time

    def wait(self, seconds: float) -> None:
        self.time += seconds

    def send(self, request: str, apply: Callable[[], Any]) -> Any:
        return apply()

    def control_producer(self, transactional_id: str) -> MemoryProducer:
        return MemoryProducer(transactional_id, self.cluster, self, timeout_s=60)

    def reader(self, partition: int) -> MemoryReader:
        return MemoryReader(self._offsets_topic, partition, self.cluster, self)

    def task(self, settings: TaskSettings) -> MemoryTaskKafka:
        return MemoryTaskKafka(self, settings, "p.")

    def runtime(self, interruption: Interruption | None = None) -> Runtime:
        """Return the clock and the signals of a run: none unless said otherwise."""
        return Runtime(
            now=self.now,
            sleep=self.wait,
            now_ms=lambda: int(self.now() * 1000),
            utc=lambda: "now",
            interruption=interruption or Interruption(lambda: None),
        )

    def committed(self, topic: str) -> list[LogRecord]:
        """Return the committed records of a topic, each partition in order."""
        logs = self.cluster.topic(topic).logs if topic in self.cluster.topics else []
        return [entry for log in logs for entry in log.fetch(log.start, committed=True)[0]]


@dataclass(frozen=True)
class MemoryTaskKafka:
    """The clients of a task of such a Kafka (`task_contract.TaskKafka`); its transactional ids begin with `prefix`."""

    kafka: MemoryKafka
    settings: TaskSettings
    prefix: str

    def producer(self, task: int) -> MemoryProducer:
        name = task_id(self.prefix, self.settings.job, task)
        return MemoryProducer(name, self.kafka.cluster, self.kafka, timeout_s=60)

    def reader(self) -> MemoryReader:
        return self.kafka.reader(self.settings.offsets_partition)


class Unheard:
    """An observer of a run that nobody watches."""

    def note(self, text: str) -> None:
        pass

    def progress(self, progress: Progress) -> None:
        pass


class KilledError(BaseException):
    """The end of a process at a fail point: nothing below may catch it."""


@contextlib.contextmanager
def killed_at(point: str, hit: int = 1) -> Iterator[None]:
    """Kill what runs inside when it passes a fail point for the nth time, which it has to."""
    left = {point: hit}

    def reached(name: str) -> None:
        if name in left:
            left[name] -= 1
            if left[name] == 0:
                raise KilledError(f"{name}@{hit}")

    failpoints.handle_with(reached)
    try:
        yield
    except KilledError:
        return
    finally:
        failpoints.handle_with(None)
    raise AssertionError(f"{point} was passed {hit - left[point]} times, and the run ended")
