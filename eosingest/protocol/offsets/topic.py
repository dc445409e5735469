"""Creates and checks the offsets topic, finds a job's partition, and reads it to its end (docs/protocol.md)."""

from __future__ import annotations

from eosingest.errors import FatalError, TemporaryError
from eosingest.kafka.ports import Admin, FailureKind, KafkaFailure, OffsetsReader, TopicDescription
from eosingest.protocol.offsets.state import JobState

PARTITIONS = 5
# Small segments: an active segment is never compacted, and every run reads the partition. min.insync.replicas keeps
# the broker's value: 2 would make a topic on a single broker unwritable.
_CONFIG = {"cleanup.policy": "compact", "segment.bytes": str(64 << 20), "min.cleanable.dirty.ratio": "0.1"}


def murmur2(data: bytes) -> int:
    """Return Kafka's murmur2 (org.apache.kafka.common.utils.Utils), as a positive 31-bit number (`toPositive`)."""
    mask, multiplier = 0xFFFFFFFF, 0x5BD1E995
    digest = (0x9747B28C ^ len(data)) & mask
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * multiplier & mask
        k = (k ^ k >> 24) * multiplier & mask
        digest = (digest * multiplier & mask) ^ k
    if whole < len(data):
        digest = (digest ^ int.from_bytes(data[whole:], "little")) * multiplier & mask
    digest = (digest ^ digest >> 13) * multiplier & mask
    return (digest ^ digest >> 15) & 0x7FFFFFFF


def partition_of(job: str, partitions: int) -> int:
    """Return the one partition that holds all records of a job: murmur2 of its name, as in Java's partitioner."""
    return murmur2(job.encode()) % partitions


def ensure_topic(admin: Admin, name: str) -> tuple[TopicDescription, list[str]]:
    """Return the topic, created if it does not exist, and warnings.

    Raises FatalError where its cleanup.policy would delete progress, TemporaryError where the new topic cannot be seen yet.
    """
    found = admin.describe_topic(name)
    if found is None:
        admin.create_topic(name, partitions=PARTITIONS, replication_factor=-1, config=_CONFIG)
        found = admin.describe_topic(name)
    if found is None:
        raise TemporaryError(
            f"the offsets topic {name} was just created and is not there yet",
            code="offsets-topic-missing",
            hint="nothing was sent; run again",
        )
    if found.config is None:
        return found, [f"no right to read the configuration of {name}: its cleanup.policy was not checked"]
    policy = found.config.get("cleanup.policy", "")
    if policy != "compact":
        raise FatalError(
            f'the offsets topic {name} has cleanup.policy "{policy}": it must be "compact", or progress would be deleted',
            code="offsets-topic-policy",
            hint="nothing was sent; correct it, then run again: kafka-configs --bootstrap-server SERVERS --alter"
            f" --entity-type topics --entity-name {name} --add-config cleanup.policy=compact",
        )
    return found, []


def read_deadline_s(transaction_timeout_s: float) -> float:
    """Return how long a read may wait for open transactions without progress: two transaction timeouts and 10 s."""
    return 2 * transaction_timeout_s + 10


def read_to_high_watermark(reader: OffsetsReader, state: JobState, *, deadline_s: float) -> None:
    """Fold all records now in the partition into `state`, waiting until every transaction there is decided.

    The end is the high watermark, never the last stable offset: an open transaction may hide committed offsets that
    follow it, and stopping there would send their records again (Materialize#23380, KAFKA-10167).
    Raises KafkaFailure, with code `read-deadline` where open transactions block the read.
    """
    _read(reader, state, reader.high_watermark(), committed=True, deadline_s=deadline_s)
    while state.control is None and (end := reader.high_watermark()) > state.end:
        # Compaction removed the control record during the read: a later one of its key follows the end of that read.
        _read(reader, state, end, committed=True, deadline_s=deadline_s)


def read_to_last_stable_offset(reader: OffsetsReader, state: JobState, *, deadline_s: float) -> None:
    """Fold the records below the last stable offset, waiting for no open transaction: for checks, never to resume from."""
    _read(reader, state, reader.last_stable_offset(), committed=True, deadline_s=deadline_s)


def read_uncommitted(reader: OffsetsReader, state: JobState, *, deadline_s: float) -> None:
    """Fold all records, of aborted and open transactions too: for claims, and to find a job (docs/protocol.md, step 2)."""
    _read(reader, state, reader.high_watermark(), committed=False, deadline_s=deadline_s)
    while state.newest is None and state.newest_run is not None and (end := reader.high_watermark()) > state.end:
        # Run records are kept: the job has run, and compaction removed its control record during the read.
        _read(reader, state, end, committed=False, deadline_s=deadline_s)


def _read(reader: OffsetsReader, state: JobState, end: int, *, committed: bool, deadline_s: float) -> None:
    log_start = reader.log_start()
    if end < state.end or (state.end and log_start > state.end):
        raise KafkaFailure(
            FailureKind.REFUSED,
            "log-truncated",
            f"the offsets topic holds offsets {log_start} to {end}, and it was read up to {state.end}: records are gone",
        )
    records = reader.read(max(state.end, log_start), end, committed=committed, deadline_s=deadline_s)
    state.fold(records, reader.place)
    state.end = end
