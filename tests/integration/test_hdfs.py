"""Jobs over HDFS in real processes: nodes that are killed in mid-run, executors of a cluster, a spec from `init`, the sample.

What is changed at every moment of a run is in tests/sources/test_hdfs.py, kills of a run are in the conformance suite.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import hdfs as hadoop
from tests.support.commands import finish
from tests.support.harness import LINES_SPEC, Job, assert_done, wait_for
from tests.support.hdfs import Hdfs
from tests.support.held_runs import Held
from tests.support.spark_clusters import LOCAL_CLUSTER, environment, on, spark_home

_SPEC = LINES_SPEC.replace('path = "data/*.jsonl"', 'path = "PATH"\nSTORAGE').replace("max_records = 2000\n", "")
_ROWS = 6_000


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    with hadoop.running(tmp_path_factory.mktemp("hdfs")) as up:
        yield up


@pytest.fixture
def folder(hdfs: Hdfs) -> str:
    """A folder with rows in three files, of several blocks each."""
    made = f"/in-{uuid.uuid4().hex[:12]}"
    rows = [line(number) for number in range(_ROWS)]
    for number in range(3):
        hdfs.put(f"{made}/k={number}/a b.jsonl", b"".join(row + b"\n" for row in rows[number::3]), blocksize="65536")
    return made


def line(number: int) -> bytes:
    return b'{"n": %d, "user": "u%d", "pad": "%s"}' % (number, number % 7, b"x" * 60)


def write_spec(job: Job, hdfs: Hdfs, folder: str, *, lines: bool) -> None:
    storage = hdfs.table().replace("{", "{{").replace("}", "}}")
    job.write_spec(_SPEC.replace("PATH", f"{hdfs.address}{folder}/*/*").replace("STORAGE", storage))
    if not lines:
        job.edit_spec('format = "text"', 'format = "json"\nschema = "n BIGINT, user STRING, pad STRING, k STRING"')
        job.edit_spec('value = "value"', "value = \"concat_ws(':', n, user, k)\"")


def expected(*, lines: bool) -> Counter[bytes]:
    return Counter(line(n) if lines else b"%d:u%d:%d" % (n, n % 7, n % 3) for n in range(_ROWS))


@pytest.mark.slow
@pytest.mark.in_turns("one moment each")
@pytest.mark.parametrize("lines", [True, False], ids=["lines", "rows"])
@pytest.mark.parametrize("node", list(hadoop.NODES))
def test_a_node_that_is_killed_in_mid_run(job: Job, hdfs: Hdfs, folder: str, node: str, lines: bool) -> None:
    """Exit 5, and the next run goes on when the node is back."""
    write_spec(job, hdfs, folder, lines=lines)
    held = Held(job, "driver-after-running=sleep:3")
    process = job.popen(env={**hdfs.environment, **held.env})
    wait_for(lambda: held.reached() or process.poll() is not None)
    hdfs.kill(node)
    try:
        done = finish(process)
    finally:
        hdfs.start(node)
        hdfs.wait_until_up()
    assert done.exit_code == 5 and set(done.codes) <= {"storage-unreachable", "source-unreadable"}, done
    assert_done(job.run(env=hdfs.environment))
    assert Counter(record.value for record in job.records()) == expected(lines=lines)
    assert_done(job.run(env=hdfs.environment), records_sent=0)


@pytest.mark.slow
def test_executors_of_a_cluster_read_files(job: Job, hdfs: Hdfs, folder: str, tmp_path: Path) -> None:
    write_spec(job, hdfs, folder, lines=False)
    on(job, LOCAL_CLUSTER)
    assert_done(job.run(env={**hdfs.environment, **environment(spark_home(tmp_path))}), records_sent=_ROWS)
    assert Counter(record.value for record in job.records()) == expected(lines=False)


@pytest.mark.slow
def test_a_spec_from_a_file_runs(job: Job, hdfs: Hdfs, folder: str) -> None:
    """`init --from hdfs://…` finds the name node's web address in the site's configuration, and so does the run."""
    site = {**hdfs.environment, "HADOOP_CONF_DIR": str(hdfs.conf)}
    job.spec.unlink(missing_ok=True)
    made = job.run("init", "--from", f"{hdfs.address}{folder}/k=1/a b.jsonl", env=site)
    assert made.exit_code == 0, made
    text = job.spec.read_text()
    assert 'format = "json"' in text
    job.spec.write_text(
        text.replace('bootstrap_servers = "embedded"', f'bootstrap_servers = "{job.servers}"').replace("a-b", job.name)
    )
    assert_done(job.run(env=site), records_sent=_ROWS // 3)


@pytest.mark.slow
def test_the_sample(job: Job, hdfs: Hdfs) -> None:
    """Breaks when sample_configs/orders-hdfs.toml is not what a run takes, with the line that names the web address."""
    made = f"/orders-{uuid.uuid4().hex[:12]}"
    rows = [line(number) for number in range(50)]
    hdfs.put(f"{made}/a.jsonl", b"".join(row + b"\n" for row in rows))
    text = (Path(__file__).parents[2] / "sample_configs" / "orders-hdfs.toml").read_text()
    names = {"hdfs://namenode:8020/orders": f"{hdfs.address}{made}", "# storage": "storage"}
    names |= {"http://namenode:9870": hdfs.web, '"orders-hdfs"': f'"{job.name}"'}
    names |= {'topic = "orders"': f'topic = "{job.name}"', "embedded": job.servers}
    for old, new in names.items():
        assert old in text
        text = text.replace(old, new)
    job.spec.write_text(text)
    assert_done(job.run(env=hdfs.environment), records_sent=50)
    assert Counter((record.key, record.value) for record in job.records()) == Counter(
        (b"u%d" % (n % 7), row) for n, row in enumerate(rows)
    )
