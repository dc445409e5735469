"""What a run of a million splits on a thousand executors would ask for, from constants that are measured here.

    .venv/bin/python -m bench.scale [--splits 100000] [--ids 10 100 1000 10000] [--json scale.json]

Measured on a broker of its own, each at two sizes or more, so that it shows whether a thing grows as its input does: fencing of
transactional ids, what the transaction log keeps of one, reading the offsets topic as driver and as task, the plan, what
tasks are told, the control record. From these the sizes and times of a scenario (--bytes, --total-splits, --executors, …) are
computed. Nothing is typed in but the scenario, and what replicas need to agree (--replica-ms), which one broker cannot show.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import pickle
import statistics
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from bench.brokers import running_broker
from eosingest.kafka.config import ClientSettings
from eosingest.kafka.kafka_python import KafkaPythonAdmin
from eosingest.kafka.offsets_reader import LibrdkafkaOffsetsReader
from eosingest.protocol.offsets import record, topic
from eosingest.protocol.offsets.record import Audit, ControlRecord, OffsetRecord, Pinned
from eosingest.protocol.offsets.state import JobState, TaskState
from eosingest.protocol.plan import Plan, make_plan
from eosingest.protocol.run_progress import RunProgress
from eosingest.protocol.source import Item, Snapshot, Source, Version
from eosingest.protocol.split_table import SplitTable
from eosingest.sources.files.cuts import FileSplit, FileSplits
from eosingest.sources.files.listing.fingerprint import Fingerprint
from eosingest.sources.files.listing.source_file import WORDING, SourceFile
from eosingest.spark.python_scan import planned_splits

TOPIC, JOB, TASKS = "eosingest-offsets", "nightly-events", 1_000
MIB = 1 << 20
_ROUNDS = 3
_DEADLINE_S = 300.0
_RECORDS_A_COMMIT = 100
Figures = dict[str, Any]
TOLD = "told by Spark's rows, bytes a split"
TOLD_LINES = "told to a task of lines, bytes a split"
COUNTING = "counting progress, µs a record"


@dataclass(frozen=True)
class Scenario:
    """What is extrapolated to. `replica_ms`: how long the replicas of a transaction log need to agree on one record."""

    bytes: int
    splits: int
    executors: int
    cores: int
    brokers: int
    replica_ms: float
    max_bytes: int
    seconds: float  # that the sending takes

    @property
    def tasks(self) -> int:
        """One a slot."""
        return self.executors * self.cores

    @property
    def transactions(self) -> float:
        """As many as their limit asks for, and one a task at least."""
        return max(self.bytes / self.max_bytes, self.tasks)

    @property
    def records(self) -> float:
        """Offset records: a split is written down by each transaction that has rows of it."""
        return self.splits + self.transactions


# ---- data as a run would have it ------------------------------------------------------------------------------------


class CutSplits(FileSplits):
    """Files that are cut into `each` splits."""

    def __init__(self, each: int) -> None:
        self._each = each

    def cut(self, item: Item, split_size: int) -> tuple[FileSplit, ...]:
        """Cut the file."""
        return tuple(FileSplit(item.name, at * split_size, split_size) for at in range(self._each))


class Cut(Source):
    """A source of files that are cut into so many splits each; nothing is read."""

    wording = WORDING

    def __init__(self, splits_each: int) -> None:
        self.splits = CutSplits(splits_each)

    def check(self) -> None:
        """Not asked."""
        raise NotImplementedError

    def plan(self, scope: object = None, recorded: object = (), purpose: object = None) -> Snapshot:
        """Not asked."""
        raise NotImplementedError

    def changed(self, items: Any) -> list[str]:
        """Not asked."""
        raise NotImplementedError


def version_of(file: SourceFile) -> Version:
    """Make one up."""
    return Fingerprint(file.length, file.mtime_ms, f"{file.mtime_ms:032x}").to_json()


def planned(splits: int, splits_each: int) -> Plan:
    """Plan files of names as tables have them."""
    size = 100_000_000
    files = []
    for number in range(splits // splits_each):
        name = f"events/date=2026-11-{number % 30:02}/part-{number:05}-4f1c8a52-6f0e-4d6e-9a50-3a1f6c0d2b7e-c000.json"
        files.append(SourceFile(name, f"/mnt/lake/{name}", size * splits_each, 1_700_000_000_000 + number, True))
    return make_plan(
        Cut(splits_each), {}, size, Snapshot(tuple(files), {file.name: version_of(file) for file in files})
    )


def offset_records(plan: Plan, sequence: int = 0) -> Iterator[OffsetRecord]:
    """Yield the offset record of every split, as the tasks of a run would have written it."""
    for number, each in enumerate(plan.pending):
        split = each.split
        yield OffsetRecord(
            split.id,
            split.bounds,
            split.size,
            True,
            570_000,
            570_000,
            2**63 + number,
            0,
            each.version,
            1,
            number % TASKS,
            sequence,
        )


# ---- measuring ------------------------------------------------------------------------------------------------------


def apart(measure: Callable[..., Figures], *arguments: Any) -> Figures:
    """Measure in a process of its own; say by how much its memory grew, and its CPU, which other work disturbs least."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_with_memory, (measure, arguments))


def _with_memory(measure: Callable[..., Figures], arguments: tuple[Any, ...]) -> Figures:
    before = _peak_kib()
    began = time.process_time()
    found = measure(*arguments)
    cpu_s = found.pop("CPU s", time.process_time() - began)
    grown = (found.pop("peak", 0) or _peak_kib()) - before
    return {**found, "CPU s": round(cpu_s, 2), "MiB": round(grown / 1024, 1)}


def _peak_kib() -> int:
    """Return the highest resident size of this process; `getrusage` would count the one that it was forked from."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


def fencing(servers: str, folder: Path, counts: list[int]) -> dict[int, Figures]:
    """Fence so many ids, as the driver does before it plans and when it settles; medians."""
    admin = KafkaPythonAdmin(ClientSettings(servers))
    try:
        admin.fence(["first"], timeout_s=_DEADLINE_S)  # makes the transaction log
        found: dict[int, Figures] = {}
        for count in counts:
            run = uuid.uuid4().hex[:6]
            ids = [f"eosingest-{JOB}-{run}.{task}" for task in range(count)]
            before = _log_bytes(folder, "__transaction_state")
            seconds = [_timed(partial(admin.fence, ids, timeout_s=_DEADLINE_S)) for _ in range(_ROUNDS)]
            log = _log_bytes(folder, "__transaction_state") - before
            middle = statistics.median(seconds)
            found[count] = {
                "seconds": round(middle, 3),
                "ms an id": round(1000 * middle / count, 3),
                "log bytes an id": round(log / count / _ROUNDS),
            }
        return found
    finally:
        admin.close()


def _timed(call: Callable[[], object]) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began


def _log_bytes(folder: Path, name: str) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*.log") if file.parent.name.startswith(name))


def write_offsets(servers: str, plan: Plan) -> int:
    """Write the offset record of every split, by transactions; return the partition."""
    partition = topic.partition_of(JOB, topic.PARTITIONS)
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "bench", "linger.ms": 5})
    producer.init_transactions(60)
    producer.begin_transaction()
    for number, each in enumerate(offset_records(plan)):
        producer.produce(TOPIC, each.encode(), each.key(JOB), partition)
        if number % _RECORDS_A_COMMIT == _RECORDS_A_COMMIT - 1:
            producer.commit_transaction(60)
            producer.begin_transaction()
    control = ControlRecord(1, "now", record.RUNNING, TASKS, Pinned("json", "", "t", "i", "c", 5, "p", "o"), 1)
    producer.produce(TOPIC, control.encode(), record.control_key(JOB), partition)
    producer.commit_transaction(60)
    return partition


def read(servers: str, partition: int, as_task: bool) -> Figures:
    """Read the offsets topic to its end, as the driver does, or as a task that starts when all the others have ended."""
    state = TaskState(JOB, run=1, task=0) if as_task else JobState(JOB)
    reader = LibrdkafkaOffsetsReader(TOPIC, partition, ClientSettings(servers))
    try:
        seconds = _timed(lambda: topic.read_to_high_watermark(reader, state, deadline_s=_DEADLINE_S))
    finally:
        reader.close()
    return {"seconds": round(seconds, 2), "records": state.end}


def planning(splits: int, splits_each: int) -> Figures:
    """Plan, and make what tasks are told. CPU and memory are those of the plan and of the hashes that rows carry."""
    began = time.process_time()
    plan = planned(splits, splits_each)
    found = planned_splits(plan)
    cpu_s, peak = time.process_time() - began, _peak_kib()
    table = SplitTable({split.key: split.planned for split in found})
    told = len(pickle.dumps(table))
    part = found[: max(1, splits // TASKS)]
    lines = len(pickle.dumps(tuple(part))) / len(part)
    progress = RunProgress(plan)
    records = list(offset_records(plan))
    counted_s = _timed(lambda: progress.take(records))
    return {
        "CPU s": cpu_s,
        "peak": peak,
        TOLD: round(told / splits, 1),
        TOLD_LINES: round(lines, 1),
        COUNTING: round(1e6 * counted_s / splits, 1),
    }


def being_told(path: Path) -> Figures:
    """Unpickle the table of splits, as a worker does before its first row."""
    return {"seconds": round(_timed(lambda: pickle.loads(path.read_bytes())), 2)}


def write_table(path: Path, splits: int, splits_each: int) -> None:
    """Write what a worker unpickles."""
    found = planned_splits(planned(splits, splits_each))
    path.write_bytes(pickle.dumps(SplitTable({split.key: split.planned for split in found})))


def control_bytes(partitions: int, columns: int) -> int:
    """Return how long a control record is, of a sink topic with so many partitions and a schema of so many columns."""
    ends = tuple(10**9 + number for number in range(partitions))
    schema = ", ".join(f"a_column_of_a_table_{number:04} STRING" for number in range(columns))
    pinned = Pinned("json", "/mnt/lake/events", "events", "i" * 36, "c" * 22, 5, "eosingest-", "o" * 22)
    control = ControlRecord(1, "now", record.COMPLETE, 0, pinned, 1, schema=schema, audit=Audit(ends, ends))
    return len(control.encode())


def measure(splits: int, counts: list[int]) -> Figures:
    """Measure everything, each at a tenth of the size too."""
    sizes = (splits // 10, splits)
    found: Figures = {"fencing": {}, "reading": {}, "planning": {}, "told": {}}
    with running_broker() as (folder, up):
        found["fencing"] = fencing(up.bootstrap_servers, folder, counts)
    for size in sizes:
        plan = planned(size, 100)
        one = next(offset_records(plan))
        found["offset record"] = {"key bytes": len(one.key(JOB)), "value bytes": len(one.encode())}
        with running_broker() as (folder, up):
            admin = KafkaPythonAdmin(ClientSettings(up.bootstrap_servers))
            topic.ensure_topic(admin, TOPIC)
            admin.close()
            partition = write_offsets(up.bootstrap_servers, plan)
            found["reading"][size] = {
                "log bytes a record": round(_log_bytes(folder, TOPIC) / size),
                "driver": apart(read, up.bootstrap_servers, partition, False),
                "task": apart(read, up.bootstrap_servers, partition, True),
            }
            for each in (1, 100):
                found["planning"][f"{size} of files with {each}"] = apart(planning, size, each)
                table = folder / "table"
                write_table(table, size, each)
                found["told"][f"{size} of files with {each}"] = apart(being_told, table)
    found["control record"] = {
        f"{p} partitions, {c} columns": control_bytes(p, c) for p, c in ((6, 20), (1_000, 20), (10_000, 20), (6, 2_000))
    }
    return found


# ---- extrapolating --------------------------------------------------------------------------------------------------


def extrapolated(found: Figures, scenario: Scenario) -> dict[str, str]:
    """Return what the scenario asks for, from the largest size that was measured: everything grows as its input, or slower."""
    return {**of_the_brokers(found, scenario), **of_the_driver(found, scenario), **of_the_tasks(found, scenario)}


def of_the_brokers(found: Figures, scenario: Scenario) -> dict[str, str]:
    """Return what brokers are asked for."""
    ids, tasks = found["fencing"][max(found["fencing"])], scenario.tasks
    here = tasks * ids["ms an id"] / 1000
    replicated = tasks / scenario.brokers * scenario.replica_ms / 1000
    transactions, rate = scenario.transactions, scenario.transactions / scenario.seconds
    log, kept = log_bytes(found, scenario)
    return {
        "transactional ids": f"{tasks + 1:,}: one a task, and the driver's",
        "what the transaction log keeps of them": f"{(tasks + 1) * ids['log bytes an id'] / MIB:.1f} MiB",
        "fencing them, when a run begins and when it ends": f"{here:.1f} s by the broker measured;"
        f" {max(here, replicated):.1f} s where replicas need {scenario.replica_ms:g} ms,"
        f" with {scenario.brokers} coordinators",
        "transactions": f"{transactions:,.0f}: {rate:,.0f} a second, {rate / scenario.brokers:,.1f} for each coordinator",
        "offset records": f"{scenario.records:,.0f}, {log / MIB:,.0f} MiB; after compaction {kept / MIB:,.0f} MiB",
        "the offsets topic, read by every task to its end": f"{tasks * log / 2**30:,.0f} GiB from the partition's leader,"
        f" {tasks * log / scenario.seconds / MIB:,.0f} MiB a second over the run",
    }


def of_the_driver(found: Figures, scenario: Scenario) -> dict[str, str]:
    """Return what the driver needs."""
    size = max(found["reading"])
    driver, factor = found["reading"][size]["driver"], scenario.splits / size
    few, many = (found["planning"][f"{size} of files with {each}"] for each in (100, 1))
    counting = max(few[COUNTING], many[COUNTING]) * scenario.records / 1e6
    return {
        "the offsets topic read by a driver that resumes": f"{driver['CPU s'] * factor:.0f} s,"
        f" {driver['MiB'] * factor:,.0f} MiB",
        "the plan, with 100 splits a file": f"{few['CPU s'] * factor:.0f} s, {few['MiB'] * factor:,.0f} MiB",
        "the plan, with one split a file": f"{many['CPU s'] * factor:.0f} s, {many['MiB'] * factor:,.0f} MiB",
        "counting the progress": f"{counting:.0f} s in all, {100 * counting / scenario.seconds:.2f} % of a core",
    }


def of_the_tasks(found: Figures, scenario: Scenario) -> dict[str, str]:
    """Return what each task needs."""
    size = max(found["reading"])
    task, factor = found["reading"][size]["task"], scenario.splits / size
    log, _ = log_bytes(found, scenario)
    rows: dict[str, str] = {
        "the offsets topic read by a task that begins last": f"{task['CPU s'] * factor:.0f} s,"
        f" {task['MiB'] * factor:,.0f} MiB of memory, {log / MIB:,.0f} MiB read"
    }
    for each in (100, 1):
        plan, told = (found[part][f"{size} of files with {each}"] for part in ("planning", "told"))
        rows[f"splits sent to each task of Spark's rows, splits a file: {each}"] = (
            f"{plan[TOLD] * scenario.splits / MIB:,.0f} MiB, {told['CPU s'] * factor:.1f} s and {told['MiB'] * factor:,.0f} MiB"
            " to take in"
        )
        lines = plan[TOLD_LINES] * scenario.splits
        rows[f"splits sent to tasks of lines, splits a file: {each}"] = (
            f"{lines / MIB:,.0f} MiB together, {lines / scenario.tasks / 1024:,.0f} KiB each"
        )
    return rows


def log_bytes(found: Figures, scenario: Scenario) -> tuple[float, float]:
    """Return the bytes of all offset records of a run, and of those that compaction leaves."""
    each = found["reading"][max(found["reading"])]["log bytes a record"]
    return scenario.records * each, scenario.splits * each


def main() -> None:
    """Measure, extrapolate, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=100_000)
    parser.add_argument("--ids", type=int, nargs="*", default=[10, 100, 1_000, 10_000])
    parser.add_argument("--bytes", type=float, default=100e12)
    parser.add_argument("--total-splits", type=int, default=1_000_000)
    parser.add_argument("--executors", type=int, default=1_000)
    parser.add_argument("--cores", type=int, default=4)
    parser.add_argument("--brokers", type=int, default=10)
    parser.add_argument("--replica-ms", type=float, default=5.0)
    parser.add_argument("--hours", type=float, default=10.0, help="that the sending takes")
    parser.add_argument("--max-bytes", type=int, default=256 * MIB, help="transaction.max_bytes")
    parser.add_argument("--json", type=Path, default=Path("scale.json"))
    told = parser.parse_args()
    found = measure(told.splits, told.ids)
    print(json.dumps(found, indent=1, ensure_ascii=False))
    scenario = Scenario(
        int(told.bytes),
        told.total_splits,
        told.executors,
        told.cores,
        told.brokers,
        told.replica_ms,
        told.max_bytes,
        told.hours * 3600,
    )
    told.json.write_text(json.dumps(found, indent=1))
    print(f"\n{scenario}\n")
    for what, figure in extrapolated(found, scenario).items():
        print(f"| {what} | {figure} |")


if __name__ == "__main__":
    main()
