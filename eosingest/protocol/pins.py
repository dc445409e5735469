"""Checks a run against the job's pins: for life (format, root, topic, cluster, prefix) or until complete (digest). Pure.

The control record of earlier runs has the pins. A spec that differs is exit 12 before anything is sent; the error names
the change and the way out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from eosingest.errors import ChangedError, SpecError
from eosingest.protocol.offsets.record import Audit, ControlRecord, OffsetRecord, Pinned
from eosingest.protocol.offsets.state import JobState
from eosingest.protocol.source import SplitId
from eosingest.records.checksum import MODULUS

_NAMES = {
    "format": "source.format",
    "root": "source.root",
    "cluster_id": "the cluster of sink.bootstrap_servers",
    "topic": "sink.topic",
    "offsets_partitions": "the partition count of the offsets topic",
    "prefix": "sink.transactional_id_prefix",
}


def carried_forward(mine: ControlRecord, settled: ControlRecord | None) -> ControlRecord:
    """Return our control record with the pins of `settled`, the last committed one that is not a claim.

    A claim is built from a read_uncommitted read: the pins that it carries may come from an aborted record.
    """
    if settled is None:
        return mine
    return replace(
        mine,
        pinned=settled.pinned,
        pinned_since=settled.pinned_since,
        pin_open=settled.pin_open,
        digest=settled.digest,
        split_size=settled.split_size,
        schema=settled.schema,
        schema_files=settled.schema_files,
        encodings=settled.encodings,
        records_total=settled.records_total,
        forgotten=settled.forgotten,
        audit=settled.audit,
        scope=settled.scope,
        dead_letters=settled.dead_letters,
        by_parts_since=settled.by_parts_since,
    )


def audit_starts_anew(mine: ControlRecord, topic_id: str, *, from_scratch: bool, sent: bool) -> bool:
    """Say whether no record so far in the sink topic counts for the audit. Every earlier task must be fenced already."""
    return from_scratch or topic_id != mine.pinned.topic_id or not (sent or mine.audit.retired_records)


def retired(audit: Audit, receipts: Iterable[OffsetRecord]) -> Audit:
    """Return the audit plus the receipts of tombstoned offset records, whose records stay in the topic."""
    for receipt in receipts:
        audit = replace(
            audit,
            retired_records=audit.retired_records + receipt.records,
            retired_checksum=(audit.retired_checksum + receipt.checksum) % MODULUS,
        )
    return audit


def in_force(control: ControlRecord, offsets: Mapping[SplitId, OffsetRecord]) -> bool:
    """Say whether the pins until `complete` are in force: an unfinished job has committed offset records under them."""
    return control.pin_open and any(offset.run >= control.pinned_since for offset in offsets.values())


def refuse_other_life(old: Pinned, new: Pinned) -> None:
    """Raise ChangedError where a pin for the job's life differs. Topic ids are checked elsewhere."""
    for name, words in _NAMES.items():
        was, now = getattr(old, name), getattr(new, name)
        if was != now:
            raise ChangedError(
                f"{words}: was {was!r} in the job's earlier runs and is {now!r} now",
                code="pinned",
                hint=f"nothing was sent; restore it, or take a new job name{from_scratch_hint()}",
            )


def refuse_other_format(state: JobState, format: str) -> None:
    """Raise ChangedError where the job's offset records are of another format: its source cannot read them."""
    control = state.settled
    if control is not None and state.offsets:
        refuse_other_life(control.pinned, replace(control.pinned, format=format))


def written_topic_recreated(topic: str) -> ChangedError:
    """Make the error for a sink or dead-letter topic that is not the one that earlier runs wrote to."""
    return ChangedError(
        f"topic {topic} was deleted, or recreated, since the job wrote to it: the sent records are not in it",
        code="topic-recreated",
        hint=f"nothing was sent; take a new job name{from_scratch_hint()}",
    )


def refuse_other_digest(control: ControlRecord, digest: Mapping[str, str]) -> None:
    """Raise ChangedError where a setting that shapes the bytes of records differs from its pin."""
    changed = changed_parts(control.digest, digest)
    if not changed:
        return
    finish = "finish with the earlier version" if any(name.startswith("version.") for name in changed) else "restore it"
    raise ChangedError(
        f"{_what(changed, control.digest, digest)}: changed in the middle of the job (pinned since run {control.pinned_since})",
        code="spec-changed",
        hint=f"nothing was sent; {finish} and run again until the job is complete, then change it; or, if the sent records"
        " stay as they are, have that proven and resume with the change: eosingest run SPEC --accept-change; or take a new job"
        f" name{from_scratch_hint()}",
    )


def refuse_other_meaning(control: ControlRecord, digest: Mapping[str, str]) -> None:
    """Raise ChangedError where the spec would make other records than were sent. For audits, of complete jobs as well."""
    changed = changed_parts(control.digest, digest)
    if changed:
        raise ChangedError(
            f"{_what(changed, control.digest, digest)}: changed since run {control.pinned_since} of the job",
            code="spec-changed",
            hint="restore it to compare with the source, or verify without --against-source, by the receipts alone",
        )


def changed_parts(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """Return the names of the settings whose values in two digests differ."""
    return sorted(name for name in {*old, *new} if old.get(name) != new.get(name))


def _what(changed: Iterable[str], old: Mapping[str, str], new: Mapping[str, str]) -> str:
    return ", ".join(
        f"{name} (was {old.get(name)}, is {new.get(name)})" if name.startswith("version.") else name for name in changed
    )


def of_another_offsets_topic(pinned: Pinned, offsets_topic_id: str) -> bool:
    """Say whether a control record was written for an offsets topic with another id."""
    return pinned.offsets_topic_id != offsets_topic_id


def refuse_lost_progress(state: JobState, control: ControlRecord, offsets_topic_id: str) -> None:
    """Raise ChangedError where the offsets topic was recreated after the control record, or lacks offset records."""
    if of_another_offsets_topic(control.pinned, offsets_topic_id):
        raise offsets_topic_recreated(control.run)
    pin = control.dead_letters
    letters = ("dead letters", state.dead_letters(pin).count, 0 if pin is None else pin.before)
    counts = [("records", state.records_total, control.records_total), letters]
    for what, found, told in counts:
        if found < told:
            raise ChangedError(
                f"the offset records account for {found} {what}, the control record for {told}: offset records were deleted",
                code="progress-lost",
                hint=f"nothing was sent; restore the offsets topic, or take a new job name{from_scratch_hint()}",
            )


def offsets_topic_grew(was: int, now: int) -> ChangedError:
    """Make the error for an offsets topic that got partitions since the job wrote: its records are in another one."""
    return ChangedError(
        f"{_NAMES['offsets_partitions']}: was {was} in the job's earlier runs and is {now} now",
        code="pinned",
        hint="nothing was sent; partitions cannot be removed: let sink.offsets_topic name another topic for this job,"
        " under a new job name; everything is sent again, in addition to the records in the topic",
    )


def same_ids(prefix: str, job: str, other_prefix: str, other_job: str) -> SpecError:
    """Make the error for a job with the transactional ids of another job: each would fence the other."""
    return SpecError(
        f'job "{job}" with sink.transactional_id_prefix "{prefix}" would have the transactional ids of job "{other_job}", whose'
        f' prefix is "{other_prefix}": "{prefix}{job}.0" and so on',
        code="same-transactional-ids",
        hint="nothing was sent; give this job another name, or another sink.transactional_id_prefix",
    )


def job_progress_lost(job: str, offsets_topic: str) -> ChangedError:
    """Make the error for lost progress: the cluster knows the first task's id of a job that has no control record."""
    return ChangedError(
        f'the offsets topic {offsets_topic} holds nothing about job "{job}", yet the cluster remembers a run of it: the offsets'
        " topic was deleted, or the spec names another one",
        code="progress-lost",
        hint=f"nothing was sent; name the right sink.offsets_topic{from_scratch_hint()}",
    )


def offsets_topic_recreated(run: int) -> ChangedError:
    """Make the error for an offsets topic that was deleted or recreated since a run began."""
    return ChangedError(
        f"the offsets topic was deleted, or recreated, during run {run}: its offset records are gone",
        code="progress-lost",
        hint=f"nothing more was sent; restore the offsets topic, or take a new job name{from_scratch_hint()}",
    )


def from_scratch_hint() -> str:
    """Return the end of a hint: how to send everything again."""
    return (
        "; or send everything again, in addition to the records in the topic, with: eosingest run SPEC --from-scratch"
    )
