"""Jobs over buckets in real processes: connections that are cut, secrets that nobody sees, refusals before the claim, a sample.

What is overwritten or deleted at every moment of a run is in tests/sources/test_buckets.py, kills are in the conformance suite.
"""

from __future__ import annotations

import os
import signal
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from eosingest.host.paths import cache_directory
from tests.support import s3proxy
from tests.support.commands import Done, finish
from tests.support.cutting_proxy import cutting
from tests.support.harness import LINES_SPEC, Job, assert_done, assert_refused, wait_for
from tests.support.held_runs import Held
from tests.support.s3proxy import ACCESS_KEY, SECRET_KEY, Store
from tests.support.spark_clusters import LOCAL_CLUSTER, environment, on, spark_home

_SPEC = (
    LINES_SPEC.replace('path = "data/*.jsonl"', 'path = "s3://BUCKET/in/*"\nSTORAGE')
    .replace('split_size = "64KiB"', 'split_size = "256KiB"')
    .replace("max_records = 2000\n", "")
)
_SECRETS = (
    'storage = { endpoint = "ENDPOINT", access_key = "${env:EOSINGEST_S3_KEY}",'
    ' secret_key = "${env:EOSINGEST_S3_SECRET}" }'
)
_ENVIRONMENT = {"EOSINGEST_S3_KEY": ACCESS_KEY, "EOSINGEST_S3_SECRET": SECRET_KEY}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with s3proxy.running(tmp_path_factory.mktemp("s3proxy")) as up:
        yield up


@pytest.fixture
def bucket(store: Store) -> str:
    return store.bucket(f"in-{uuid.uuid4().hex[:12]}")


def write_spec(job: Job, bucket: str, endpoint: str) -> None:
    storage = _SECRETS.replace("ENDPOINT", endpoint).replace("{", "{{").replace("}", "}}")
    job.write_spec(_SPEC.replace("BUCKET", bucket).replace("STORAGE", storage))


def write_json_spec(job: Job, bucket: str, endpoint: str) -> None:
    """Objects that Spark reads."""
    write_spec(job, bucket, endpoint)
    job.edit_spec('format = "text"', 'format = "json"\nschema = "n BIGINT"')
    job.edit_spec('value = "value"', 'value = "CAST(n AS STRING)"')


def lines(first: int, count: int) -> list[bytes]:
    return [b'{"n": %d, "user": "u%d", "pad": "%s"}' % (n, n % 7, b"x" * 60) for n in range(first, first + count)]


def shown_by(done: Done, job: Job) -> str:
    logs = (cache_directory() / "logs").glob(f"{job.name}-*.log")
    return done.text + "".join(log.read_text(errors="replace") for log in logs)


@pytest.mark.slow
@pytest.mark.parametrize("value", ["value", "concat(value, '')"])
def test_connections_that_are_cut_lose_and_double_nothing(job: Job, store: Store, bucket: str, value: str) -> None:
    """Breaks when a stream that is taken up again begins at another byte. No secret is printed or logged."""
    rows = lines(0, 60_000)
    for number in range(3):
        store.put(bucket, f"in/{number}.jsonl", b"".join(row + b"\n" for row in rows[number::3]))
    with cutting(int(store.endpoint.rpartition(":")[2]), least=100_000, most=500_000) as proxy:
        write_spec(job, bucket, f"http://127.0.0.1:{proxy.port}")
        job.edit_spec('value = "value"', f'value = "{value}"')
        done = job.run(env=_ENVIRONMENT)
        assert_done(done, records_sent=len(rows))
        assert proxy.cuts >= 10, proxy.cuts
    assert Counter(record.value for record in job.records()) == Counter(rows)
    assert SECRET_KEY not in shown_by(done, job)
    write_spec(job, bucket, store.endpoint)  # another endpoint: the same objects
    job.edit_spec('value = "value"', f'value = "{value}"')
    assert_done(job.run(env=_ENVIRONMENT), records_sent=0)
    planned = job.run("plan", env=_ENVIRONMENT)
    assert SECRET_KEY not in shown_by(planned, job)
    assert (planned.exit_code, planned.data["splits_pending"]) == (0, 0), planned


@pytest.mark.in_turns("one property of a store each")
def test_what_a_store_refuses_ends_a_run_before_it_claims(job: Job, store: Store, bucket: str) -> None:
    store.put(bucket, "in/a", b"a\n")
    write_spec(job, bucket, store.endpoint)
    assert_done(job.run(env=_ENVIRONMENT), records_sent=1)
    before = job.run("status", env=_ENVIRONMENT).data["run"]
    wrong = job.run(env={**_ENVIRONMENT, "EOSINGEST_S3_SECRET": "wrong-" + SECRET_KEY})
    assert_refused(wrong, 7, "storage-refused", "SignatureDoesNotMatch")
    assert SECRET_KEY not in wrong.text
    write_spec(job, bucket, "http://127.0.0.1:1")
    assert_refused(job.run(env=_ENVIRONMENT), 5, "storage-unreachable", "does not answer")
    write_spec(job, "there-is-none", store.endpoint)
    assert_refused(job.run(env=_ENVIRONMENT), 2, "bucket-not-found", "there is no bucket there-is-none")
    write_spec(job, bucket, store.endpoint)
    assert job.run("status", env=_ENVIRONMENT).data["run"] == before, "a run that was refused has claimed"


@pytest.mark.slow
@pytest.mark.in_turns("one property of a store each")
def test_spark_reads_through_connections_that_are_cut(job: Job, store: Store, bucket: str) -> None:
    """JSON by Hadoop's client of S3: exact through breaks, and no secret is printed, logged or in Spark's own settings."""
    rows = lines(0, 60_000)
    for number in range(3):
        store.put(bucket, f"in/k={number}/a b.jsonl", b"".join(row + b"\n" for row in rows[number::3]))
    with cutting(int(store.endpoint.rpartition(":")[2]), least=200_000, most=900_000) as proxy:
        write_spec(job, bucket, f"http://127.0.0.1:{proxy.port}")
        job.edit_spec("/in/*", "/in/*/*")
        job.edit_spec('format = "text"', 'format = "json"\nschema = "n BIGINT, user STRING, pad STRING, k STRING"')
        job.edit_spec('value = "value"', "value = \"concat_ws(':', n, user, k)\"")
        done = job.run(env=_ENVIRONMENT)
        assert_done(done, records_sent=len(rows))
        assert proxy.cuts >= 5, proxy.cuts
    expected = Counter(b"%d:u%d:%d" % (n, n % 7, n % 3) for n in range(60_000))
    assert Counter(record.value for record in job.records()) == expected
    assert SECRET_KEY not in shown_by(done, job)
    write_spec(job, bucket, store.endpoint)  # another endpoint: the same objects


@pytest.mark.in_turns("one property of a store each")
def test_what_is_done_is_not_asked_for(job: Job, store: Store, bucket: str) -> None:
    """Spark opens the one new object of many, whose listing costs it nothing."""
    for number in range(60):
        store.put(bucket, f"in/{number:02}.jsonl", b'{"n": %d}\n' % number)
    write_json_spec(job, bucket, store.endpoint)
    assert_done(job.run(env=_ENVIRONMENT), records_sent=60)
    store.put(bucket, "in/new.jsonl", b'{"n": 60}\n')
    with cutting(int(store.endpoint.rpartition(":")[2]), least=10**9, most=10**9) as proxy:
        write_json_spec(job, bucket, f"http://127.0.0.1:{proxy.port}")
        assert_done(job.run(env=_ENVIRONMENT), records_sent=1)
    keys = {line.partition("/in/")[2] for line in proxy.asked if "/in/" in line and "prefix=" not in line}
    assert keys == {"new.jsonl"}, proxy.asked
    assert sum("prefix=" in line for line in proxy.asked) <= 3, "by the run, and none by Spark"


@pytest.mark.slow
def test_executors_of_a_cluster_read_objects(job: Job, store: Store, bucket: str, tmp_path: Path) -> None:
    """They get Hadoop's client of S3 from the driver, which has it from the cache."""
    rows = lines(0, 4_000)
    for number in range(4):
        store.put(bucket, f"in/{number}.jsonl", b"".join(row + b"\n" for row in rows[number::4]))
    write_json_spec(job, bucket, store.endpoint)
    on(job, LOCAL_CLUSTER)
    done = job.run(env={**_ENVIRONMENT, **environment(spark_home(tmp_path))})
    assert_done(done, records_sent=len(rows))
    assert Counter(record.value for record in job.records()) == Counter(b"%d" % n for n in range(4_000))
    assert SECRET_KEY not in shown_by(done, job)


@pytest.mark.slow
def test_a_store_that_ends_in_mid_run_is_a_temporary_error(job: Job, tmp_path: Path) -> None:
    """Exit 5, and the next run goes on: it is no fault of the data that Spark cannot read it."""
    rows = lines(0, 3_000)
    with s3proxy.running(tmp_path) as store:
        bucket = store.bucket("ending")
        for number in range(3):
            store.put(bucket, f"in/{number}.jsonl", b"".join(row + b"\n" for row in rows[number::3]))
        write_json_spec(job, bucket, store.endpoint)
        held = Held(job, "driver-after-running=sleep:3")
        process = job.popen(env={**_ENVIRONMENT, **held.env})
        wait_for(lambda: held.reached() or process.poll() is not None)
        os.kill(store.pid, signal.SIGKILL)
        done = finish(process)
        assert (done.exit_code, set(done.codes)) == (5, {"storage-unreachable"}), done
        assert "does not answer" in done.text
    with s3proxy.running(tmp_path) as store:
        write_json_spec(job, bucket, store.endpoint)
        assert_done(job.run(env=_ENVIRONMENT))
    assert Counter(record.value for record in job.records()) == Counter(b"%d" % n for n in range(3_000))


@pytest.mark.in_turns("one property of a store each")
def test_the_sample(job: Job, store: Store, bucket: str) -> None:
    """Breaks when sample_configs/orders-bucket.toml is not what a run takes, with the line for a store of one's own."""
    rows = lines(0, 50)
    store.put(bucket, "orders/a.jsonl", b"".join(row + b"\n" for row in rows))
    text = (Path(__file__).parents[2] / "sample_configs" / "orders-bucket.toml").read_text()
    names = {"my-bucket": bucket, "# storage": "storage", "https://store.example:9000": store.endpoint}
    names |= {'"orders-bucket"': f'"{job.name}"', 'topic = "orders"': f'topic = "{job.name}"', "embedded": job.servers}
    for old, new in names.items():
        assert old in text
        text = text.replace(old, new)
    job.spec.write_text(text)
    environment = {"S3_KEY": ACCESS_KEY, "S3_SECRET": SECRET_KEY}
    assert_done(job.run(env=environment), records_sent=50)
    assert Counter((record.key, record.value) for record in job.records()) == Counter(
        (b"u%d" % (n % 7), row) for n, row in enumerate(rows)
    )
