"""Waits for the executors of a cluster, checks their Python, and detects if all of them are lost during the job.

session.py starts Spark; launcher, audit and preview call `ready` before they use it. A local Spark needs none of this: its
tasks run in the driver's JVM and in this Python.

    a job of one task: starts an executor, checks its Python ─▶ wait for the number requested ─▶ a task for each slot
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from eosingest.errors import EosingestError, FatalError, TemporaryError
from eosingest.spark import causes, cluster, failures, session
from eosingest.spark.cluster import Registered
from eosingest.spark.executor_errors import differences, environment_error, no_start, unfit
from eosingest.spark.probe import Found, probe
from eosingest.spec.masters import executors_of_local_cluster, is_local

_LOOK_EVERY_S = 0.25
_SAY_AFTER_S, _SAY_EVERY_S = 3.0, 15.0
_STABLE_S = 2.0  # a standalone cluster starts all executors it can at once
_ALL_S = "30s"  # Spark's own default for spark.scheduler.maxRegisteredResourcesWaitingTime
_WATCH_EVERY_S = 2.0
_PROBES_AT_MOST = 1000
UNBOUNDED_TASKS = 1000  # for dynamic allocation without maxExecutors: each task has a transactional id to fence
_NO_EXECUTORS = "no-executors"
_LOST = ("ExecutorLostFailure", "SparkContext was shut down", "stopped SparkContext", "cancelled because SparkContext")


# ---- requested executors --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """The executors that the settings request. `executors` and `slots` are None if no setting gives a number; `most` is
    maxExecutors of dynamic allocation, `slots_each` the slots of one executor, `words` its size for messages.
    """

    executors: int | None
    slots: int | None
    dynamic: bool
    most: int | None
    slots_each: int
    words: str

    def met_by(self, seen: Registered) -> bool:
        """Say whether the requested number of executors, or else of slots, is registered."""
        if self.executors is not None:
            return seen.executors >= self.executors
        return self.slots is not None and seen.slots >= self.slots


def asked(master: str, conf: Callable[[str], str | None]) -> Asked:
    """Return what the settings of a running Spark request."""

    def number(key: str) -> int | None:
        text = conf(key)
        return int(text) if text is not None and text.strip().isdigit() else None

    dynamic = (conf("spark.dynamicAllocation.enabled") or "").lower() == "true"
    task_cpus = number("spark.task.cpus") or 1
    cores = number("spark.executor.cores")
    instances = number("spark.executor.instances")
    executors = slots = None
    local = executors_of_local_cluster(master)
    if dynamic:
        named = ("spark.dynamicAllocation.minExecutors", "spark.dynamicAllocation.initialExecutors")
        executors = max(1, instances or 0, *(number(key) or 0 for key in named))
    elif local is not None:
        executors = local
    elif master.startswith("spark://"):
        most_cores = number("spark.cores.max")
        if most_cores is not None:
            slots = max(1, most_cores // cores * cores if cores else most_cores) // task_cpus
    else:
        executors = instances or 2  # Spark's own default on YARN and Kubernetes
    return Asked(
        executors,
        slots,
        dynamic,
        number("spark.dynamicAllocation.maxExecutors") if dynamic else None,
        max(1, (cores or 1) // task_cpus),
        _words(conf("spark.executor.memory") or "1g", cores),
    )


def _words(memory: str, cores: int | None) -> str:
    return f"each with {memory} of memory" + (f" and {cores} core{'s' if cores > 1 else ''}" if cores else "")


def most_tasks(spark: session.Spark) -> int:
    """Return how many tasks can run at a time; with dynamic allocation, on all executors that it may request."""
    context = spark.context
    if is_local(spark.master) or context._conf.get("spark.default.parallelism") is not None:
        return int(context.defaultParallelism)
    return tasks_for(asked(spark.master, context._conf.get), cluster.registered(context))


def tasks_for(wanted: Asked, seen: Registered) -> int:
    """Return how many task slots there are once all executors that may be added have registered."""
    each = seen.slots // seen.executors if seen.executors and seen.slots >= seen.executors else wanted.slots_each
    if not wanted.dynamic:
        return max(1, seen.slots)
    return max(1, seen.slots, wanted.most * each if wanted.most is not None else UNBOUNDED_TASKS)


# ---- waiting --------------------------------------------------------------------------------------------------------


class Watch:
    """Checks that at least one executor is registered; raises an error after `wait_s` seconds without one. `note` receives
    its messages.
    """

    def __init__(
        self,
        seen: Callable[[], Registered],
        wanted: Asked,
        wait_s: float,
        note: Callable[[str], None],
        reason: Callable[[], str | None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start the timeout. `reason` returns why there is no executor, from Spark's log, or None."""
        self._seen, self._wanted, self._wait_s, self._note, self._reason, self._now = (
            seen,
            wanted,
            wait_s,
            note,
            reason,
            now,
        )
        self._since = self._said = now()

    def look(self) -> Registered:
        """Return the registered executors. Raises, after `wait_s`, TemporaryError if there is none, FatalError if none fits."""
        seen, now = self._seen(), self._now()
        if seen.executors and seen.slots:
            self._since = self._said = now
            return seen
        if now - self._since >= self._wait_s:
            raise self._nobody(seen)
        if now - self._said >= (_SAY_AFTER_S if self._said == self._since else _SAY_EVERY_S):
            self._said = now
            self._note(f"waiting for executors: none yet; requested {self.number}, {self._wanted.words}")
        return seen

    @property
    def number(self) -> str:
        """How many executors or slots were requested, in words."""
        if self._wanted.executors is not None:
            return str(self._wanted.executors)
        return "as many as the cluster has" if self._wanted.slots is None else f"{self._wanted.slots} slots"

    def _nobody(self, seen: Registered) -> EosingestError:
        if seen.executors:
            return FatalError(
                "no executor has the cores that a task needs",
                code=_NO_EXECUTORS,
                hint="spark.executor.cores must be at least spark.task.cpus",
            )
        reason = self._reason()
        return TemporaryError(
            f"no executor within {self._wait_s:.0f} s: requested {self.number}, {self._wanted.words}"
            + (f"; Spark says: {reason}" if reason else ""),
            code=_NO_EXECUTORS,
            hint="committed records are kept, nothing was sent twice; run again once the cluster has room (its web page"
            " shows its workers), request less (spark.executor.memory, spark.executor.cores), or wait longer:"
            " [spark] executor_wait",
        )


def ready(spark: session.Spark, wait_s: float, note: Callable[[str], None]) -> None:
    """Wait for the requested executors and check their Python; does nothing for a local Spark.

    Raises TemporaryError if no executor registers within `wait_s` seconds, FatalError if its Python cannot run our tasks.
    """
    if is_local(spark.master):
        return
    spark.send_package()
    watch = watch_of(spark, wait_s, note)
    _look_around(spark, watch, 1)
    seen = _all_there(spark, watch, wait_s, note)
    found = _look_around(spark, watch, min(max(1, seen.slots), _PROBES_AT_MOST))
    for difference in differences(found):
        note(difference)


def watch_of(spark: session.Spark, wait_s: float, note: Callable[[str], None]) -> Watch:
    """Make the Watch of a running Spark's executors."""
    return Watch(
        lambda: cluster.registered(spark.context),
        asked(spark.master, spark.context._conf.get),
        wait_s,
        note,
        lambda: cluster.starved_in(spark.log_file),
    )


def _look_around(spark: session.Spark, watch: Watch, tasks: int) -> list[Found]:
    """Run the probe in this many tasks; return its results. Raises what `ready` raises."""
    found: list[Found] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            found.extend(spark.context.parallelize(range(tasks), tasks).mapPartitions(probe).collect())
        except Exception as error:  # raised again below
            errors.append(error)

    job = threading.Thread(target=run, name="spark-probe", daemon=True)
    job.start()
    while True:
        job.join(_LOOK_EVERY_S)
        if not job.is_alive():
            break
        try:
            watch.look()
        except failures.FROM_THE_JVM:  # Spark has stopped: the job's error says why
            job.join(_SAY_AFTER_S)
            break
    if errors or job.is_alive():
        raise _failed(spark, errors[0] if errors else RuntimeError("Spark has stopped"))
    wrong = unfit(found)
    if wrong is not None:
        raise wrong
    return found


def _failed(spark: session.Spark, error: Exception) -> Exception:
    """Make the error for a failed probe."""
    if not isinstance(error, (*failures.FROM_THE_JVM, OSError, RuntimeError)):
        return error
    text = causes.text_of(error)
    known = environment_error(text, "nothing was sent") or no_start(text, spark.context.pythonExec)
    if known is not None:
        return known
    reason = cluster.reason_in(spark.log_file) or causes.innermost(text)
    return TemporaryError(
        f"the first Spark job on {spark.master} failed: {reason}",
        code=_NO_EXECUTORS,
        hint=f"nothing was sent; check the executors' logs, and run again{failures.log_hint(spark.log_file)}",
    )


def _all_there(spark: session.Spark, watch: Watch, wait_s: float, note: Callable[[str], None]) -> Registered:
    """Wait until all requested executors are registered; after a while, continue without the rest."""
    wanted = asked(spark.master, spark.context._conf.get)
    key = "spark.scheduler.maxRegisteredResourcesWaitingTime"
    patience = min(wait_s, spark.context._jsc.sc().conf().getTimeAsSeconds(key, _ALL_S))
    began = stable = time.monotonic()
    before = watch.look()
    while True:
        now = time.monotonic()
        if wanted.met_by(before):
            return before
        by_number = wanted.executors is not None or wanted.slots is not None
        if now - began >= patience or (not by_number and now - stable >= _STABLE_S):
            if by_number:
                note(
                    f"{before.executors} executors with {before.slots} slots are ready, of {watch.number}: starting with them"
                )
            return before
        time.sleep(_LOOK_EVERY_S)
        seen = watch.look()
        if seen != before:
            before, stable = seen, time.monotonic()


class LossWatch:
    """Watches the executors of a running job in a separate thread: `error` is set if all are lost and none is replaced."""

    def __init__(self, watch: Watch, every_s: float = _WATCH_EVERY_S) -> None:
        """Start watching, every `every_s` seconds."""
        self.error: EosingestError | None = None
        self._watch, self._every_s = watch, every_s
        self._ended = threading.Event()
        threading.Thread(target=self._run, name="spark-executors", daemon=True).start()

    def end(self) -> None:
        """Stop watching."""
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(self._every_s):
            try:
                self._watch.look()
            except EosingestError as error:
                self.error = error
                return
            except Exception:  # the JVM or Spark has ended: the job's error says so
                return


def is_lost(text: str) -> bool:
    """Say whether a job failed because its executors were lost or Spark stopped."""
    return any(words in text for words in _LOST)
