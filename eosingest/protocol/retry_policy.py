"""Decides whether a task retries from step 0 after a KafkaFailure or ends: by its kind, and how many came in a row."""

from __future__ import annotations

from eosingest.errors import FatalError, TemporaryError
from eosingest.kafka.ports import FailureKind, KafkaFailure
from eosingest.protocol.permission_hints import hint_of

_MOST_WITHOUT_COMMIT = 3


class Restarts:
    """Counts the failures of a task: `total`, and in a row since its last commit."""

    def __init__(self, task: int, run: int, sink: str, offsets: str) -> None:
        """Nothing has failed yet. For messages: numbers of task and run, names of sink topic and offsets topic."""
        self._task = task
        self._run = run
        self._topics = (sink, offsets)
        self._without_commit = 0
        self.total = 0

    def count(self, failure: KafkaFailure) -> None:
        """Count a failure. Raises FatalError or TemporaryError where trying again would not help, or did not."""
        self.total += 1
        self._without_commit += 1
        if failure.kind is FailureKind.REFUSED:
            raise FatalError(f"Kafka refused: {failure}", code=failure.code, hint=hint_of(failure.code, *self._topics))
        if failure.code == "read-deadline":
            raise TemporaryError(
                f"the offsets topic could not be read to its end: {failure.detail}", code="offsets-held-up"
            )
        if self._without_commit >= _MOST_WITHOUT_COMMIT:
            raise self.given_up(failure)

    def committed(self) -> None:
        """Record that a transaction was committed: the count of failures in a row restarts."""
        self._without_commit = 0

    def given_up(self, failure: KafkaFailure) -> FatalError | TemporaryError:
        """Return the error that the task ends with where this failure was the last one."""
        if failure.kind is FailureKind.FENCED:
            return FatalError(
                f"the producer of task {self._task} was fenced again and again while run {self._run}"
                " owned the job: either another client uses its transactional id (the same transactional_id_prefix and"
                " job name, with another offsets topic), or transaction.timeout is too small for this cluster",
                code="fenced-again-and-again",
                hint="give one of the two another sink.transactional_id_prefix, or raise transaction.timeout; then run again",
            )
        return TemporaryError(f"Kafka failed {self._without_commit} times in a row: {failure}", code="kafka-failed")
