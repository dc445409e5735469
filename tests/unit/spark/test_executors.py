"""Executors of a cluster: what was asked for, who waits how long, and what is wrong with their Python. No Spark is started."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from eosingest.errors import FatalError, TemporaryError
from eosingest.spark import cluster, executors
from eosingest.spark.cluster import Bound, Registered, refuse_unready
from eosingest.spark.executor_errors import differences, unfit
from eosingest.spark.executors import Asked, LossWatch, Watch, asked, tasks_for
from eosingest.spark.probe import MODULES, OURS, Found, probe

STANDALONE = "spark://h:7077"
DYNAMIC = {"spark.dynamicAllocation.enabled": "true"}


@pytest.mark.parametrize(
    ("master", "conf", "executors_asked", "slots_asked"),
    [
        ("yarn", {}, 2, None),
        ("k8s://h", {"spark.executor.instances": "5"}, 5, None),
        ("local-cluster[3,1,1024]", {}, 3, None),
        (STANDALONE, {}, None, None),
        (STANDALONE, {"spark.cores.max": "8"}, None, 8),
        (STANDALONE, {"spark.cores.max": "10", "spark.executor.cores": "4", "spark.task.cpus": "2"}, None, 4),
        (STANDALONE, DYNAMIC, 1, None),
        ("yarn", {**DYNAMIC, "spark.dynamicAllocation.minExecutors": "3", "spark.executor.instances": "2"}, 3, None),
    ],
)
def test_what_was_asked_for(
    master: str, conf: dict[str, str], executors_asked: int | None, slots_asked: int | None
) -> None:
    found = asked(master, conf.get)
    assert (found.executors, found.slots) == (executors_asked, slots_asked)
    assert not found.met_by(Registered(0, 0))
    assert found.met_by(Registered(99, 99)) == (found.executors is not None or found.slots is not None)


@pytest.mark.parametrize(
    ("conf", "seen", "tasks"),
    [
        ({}, Registered(3, 3), 3),
        ({}, Registered(2, 16), 16),
        ({}, Registered(0, 0), 1),
        ({**DYNAMIC, "spark.dynamicAllocation.maxExecutors": "10"}, Registered(1, 4), 40),
        ({**DYNAMIC, "spark.dynamicAllocation.maxExecutors": "2"}, Registered(4, 16), 16),
        ({**DYNAMIC, "spark.dynamicAllocation.maxExecutors": "9", "spark.executor.cores": "4"}, Registered(0, 0), 36),
        (DYNAMIC, Registered(1, 4), executors.UNBOUNDED_TASKS),
    ],
)
def test_tasks_follow_what_may_come(conf: dict[str, str], seen: Registered, tasks: int) -> None:
    """Breaks when a job of hundreds of splits runs in the two tasks that Spark speaks of before anybody registers."""
    assert tasks_for(asked("yarn", conf.get), seen) == tasks


class Clock:
    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def watch(seen: list[Registered], clock: Clock, notes: list[str], wanted: Asked | None = None) -> Watch:
    """Make a watch that waits for a minute; the last of `seen` is who is there."""
    default = asked("yarn", {"spark.executor.memory": "8g", "spark.executor.cores": "4"}.get)
    return Watch(lambda: seen[-1], wanted or default, 60.0, notes.append, lambda: "check your cluster UI", clock)


def test_who_waits_for_executors_says_so_and_ends() -> None:
    """Breaks when a run waits without end for executors that fit nowhere."""
    clock, notes = Clock(), list[str]()
    looker = watch([Registered(0, 0)], clock, notes)
    for second in range(60):
        clock.at = second
        looker.look()
    assert notes[0] == "waiting for executors: none yet; requested 2, each with 8g of memory and 4 cores"
    assert len(notes) == 4
    clock.at = 60
    with pytest.raises(TemporaryError) as raised:
        looker.look()
    assert (raised.value.exit_code, raised.value.code) == (5, "no-executors")
    assert "no executor within 60 s: requested 2, each with 8g of memory and 4 cores" in raised.value.message
    assert "Spark says: check your cluster UI" in raised.value.message


def test_lost_executors_may_come_again() -> None:
    """Breaks when the clock is not started anew: a run would end at a second loss long after the first."""
    clock, notes, seen = Clock(), list[str](), [Registered(0, 0)]
    looker = watch(seen, clock, notes)
    clock.at = 50
    looker.look()
    seen.append(Registered(1, 4))
    looker.look()
    seen.append(Registered(0, 0))
    clock.at = 100
    looker.look()
    clock.at = 111
    with pytest.raises(TemporaryError):
        looker.look()


def test_executors_without_a_slot_are_an_error_of_the_settings() -> None:
    clock = Clock()
    looker = watch([Registered(2, 0)], clock, [])
    clock.at = 60
    with pytest.raises(FatalError, match="no executor has the cores that a task needs"):
        looker.look()


def spark_on(master: str, conf: dict[str, str], patience_s: int) -> Any:
    """Make what `_all_there` asks of a running Spark."""
    java_conf = SimpleNamespace(getTimeAsSeconds=lambda key, otherwise: patience_s)
    context = SimpleNamespace(
        _conf=conf, _jsc=SimpleNamespace(sc=lambda: SimpleNamespace(conf=lambda: java_conf)), pythonExec="python3"
    )
    return SimpleNamespace(master=master, context=context, log_file=None)


@pytest.mark.parametrize(
    ("master", "conf", "coming", "patience_s", "wanted", "words"),
    [
        ("yarn", {"spark.executor.instances": "3"}, [1, 1, 2, 3], 30, 3, []),
        ("yarn", {"spark.executor.instances": "3"}, [1, 2], 0, 1, ["1 executors with 1 slots are ready, of 3"]),
        (STANDALONE, {"spark.cores.max": "4"}, [1, 2, 4, 5], 30, 4, []),
        (STANDALONE, {}, [1, 2, 3, 3], 30, 3, []),
    ],
)
def test_as_many_as_were_asked_for_are_waited_for(
    master: str,
    conf: dict[str, str],
    coming: list[int],
    patience_s: int,
    wanted: int,
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Breaks when a run begins with the first executor alone, or waits for ever for the last."""
    monkeypatch.setattr(executors, "_LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(executors, "_STABLE_S", 0.1)
    left, notes = list(coming), list[str]()

    def seen() -> Registered:
        number = left.pop(0) if len(left) > 1 else left[0]
        return Registered(number, number)

    looker = Watch(seen, asked(master, conf.get), 60.0, notes.append, lambda: None)
    found = executors._all_there(spark_on(master, conf, patience_s), looker, 60.0, notes.append)
    assert found == Registered(wanted, wanted)
    assert [any(word in note for note in notes) for word in words] == [True] * len(words)
    assert bool(notes) == bool(words)


def test_a_job_at_work_is_watched() -> None:
    clock = Clock()
    seen = [Registered(1, 1)]
    losses = LossWatch(watch(seen, clock, []), every_s=0.01)
    time.sleep(0.1)
    assert losses.error is None
    seen.append(Registered(0, 0))
    clock.at = 61
    until = time.monotonic() + 10
    while losses.error is None and time.monotonic() < until:
        time.sleep(0.01)
    losses.end()
    assert isinstance(losses.error, TemporaryError)


# ---- before Spark is started ---------------------------------------------------------------------------------------


def test_a_master_that_does_not_answer() -> None:
    """Breaks when a run finds out after two minutes of Spark's own attempts, and says exit 3."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # taken, and nobody listens
        port = nobody.getsockname()[1]
        with pytest.raises(TemporaryError) as raised:
            refuse_unready(f"spark://127.0.0.1:{port}")
        assert (raised.value.exit_code, raised.value.code) == (5, "spark-master")
        assert f"127.0.0.1:{port}: Connection refused" in raised.value.message
        with socket.create_server(("127.0.0.1", 0)) as somebody:
            refuse_unready(f"spark://127.0.0.1:{port},127.0.0.1:{somebody.getsockname()[1]}")


def test_yarn_that_nobody_describes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    with pytest.raises(FatalError, match="either HADOOP_CONF_DIR or YARN_CONF_DIR must be set"):
        refuse_unready("yarn")
    (tmp_path / "spark-env.sh").touch()  # it may name the folder, to Spark alone
    refuse_unready("yarn")
    (tmp_path / "spark-env.sh").unlink()
    monkeypatch.setenv("YARN_CONF_DIR", str(tmp_path))
    refuse_unready("yarn")


def test_a_jvm_that_waits_for_a_cluster_is_ended() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        bound = Bound(process, 0.1)
        with bound.running():
            process.wait(20)
        assert bound.expired
        unbound = Bound(process, 0.0)
        with Bound(None, 0.0).running():
            pass
        assert not unbound.expired


def test_what_the_scheduler_complains_of(tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    assert cluster.starved_in(log) is cluster.starved_in(None) is None
    log.write_text(
        "26/11/23 23:00:00 WARN TaskSchedulerImpl: Initial job has not accepted any resources; check your cluster UI\n"
        "26/11/23 23:00:00 WARN SomethingElse: x\n"
    )
    assert cluster.starved_in(log) == "Initial job has not accepted any resources; check your cluster UI"


def test_a_lost_master_is_told_before_what_follows_from_it(tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    log.write_text(
        "26/11/23 23:00:00 WARN StandaloneAppClient$ClientEndpoint: Connection to 127.0.0.1:7077 failed; waiting for master to"
        " reconnect...\n"
        "26/11/23 23:00:01 ERROR TaskSchedulerImpl: Lost executor 0 on 127.0.0.1: worker lost\n"
    )
    assert cluster.starved_in(log) == "Connection to 127.0.0.1:7077 failed; waiting for master to reconnect"


# ---- their Python --------------------------------------------------------------------------------------------------


def found(**fields: dict[str, str]) -> Found:
    return Found("h", "/usr/bin/python3", "3.11.7", fields.get("versions", {}), fields.get("missing", {}))


def test_this_python_is_fit() -> None:
    (here,) = probe([])
    assert here.versions.keys() == set(MODULES.values())
    assert here.missing == {}
    assert unfit([here]) is None
    assert differences([here]) == []


def test_all_that_is_missing_is_said() -> None:
    error = unfit(
        [found(missing={"numpy": "ModuleNotFoundError: No module named 'numpy'", "xxhash": "ImportError: x"})]
    )
    assert error is not None
    assert (error.exit_code, error.code) == (7, "executor-environment")
    assert "the executors' Python (/usr/bin/python3 on h) has no modules numpy, xxhash" in error.message
    assert "install numpy xxhash" in error.hint
    assert "spark.pyspark.python" in error.hint
    assert "spark.archives" in error.hint


def test_a_library_that_is_too_old() -> None:
    error = unfit([found(versions={"confluent-kafka": "1.9.2", "numpy": "2.0"})])
    assert error is not None
    assert "confluent-kafka 1.9.2 (needed: 2.16 or newer)" in error.message
    assert unfit([found(versions={"confluent-kafka": "2.16.0"})]) is None


def test_a_library_of_another_version_is_worth_a_word() -> None:
    assert [text.split(", this")[0] for text in differences([found(versions={"numpy": "1.26.99"})] * 2)] == [
        "/usr/bin/python3 on h has numpy 1.26.99"
    ]


def test_the_probe_looks_for_all_that_tasks_import() -> None:
    """Breaks when a task imports a library that the first job does not ask for: it would fail in the middle of a run."""
    code = (
        "import sys, pyspark.sql, pyspark.sql.pandas.types\nbefore = set(sys.modules)\n"
        f"import {', '.join(OURS)}\nprint(*{{name.split('.')[0] for name in set(sys.modules) - before}})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    third_party = {name for name in done.stdout.split() if name not in sys.stdlib_module_names} - {"eosingest"}
    installed = {name for name in third_party if not name.startswith("_")} - {"cython_runtime", "pyspark", "py4j"}
    optional = {"pandas", "dateutil", "six", "pytz", "tzdata", "typing_extensions"}
    assert {name.partition(".")[0] for name in MODULES} >= installed - optional
