"""What spark-defaults.conf says, read as Java reads it; which master holds where the spec names none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from eosingest.errors import SpecError
from eosingest.spark.spark_defaults import conf_folder, refuse_embedded_elsewhere, spark_defaults, spark_master
from eosingest.spec import Spec, load
from eosingest.spec.masters import (
    addresses,
    attempts_of_tasks,
    executors_of_local_cluster,
    master_problem,
    on_other_machines,
)

SPEC = """\
name = "j"
[source]
format = "text"
path = "data"
[sink]
bootstrap_servers = "{servers}"
topic = "t"
"""
Defaults = Callable[[str], None]


@pytest.fixture(autouse=True)
def _no_spark_around(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_CONF_DIR", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Defaults:
    """Write a spark-defaults.conf that is in force."""

    def write(text: str) -> None:
        (tmp_path / "spark-defaults.conf").write_text(text)
        monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))

    return write


def spec_of(tmp_path: Path, master: str | None = None, servers: str = "h:9092") -> Spec:
    file = tmp_path / "job.toml"
    file.write_text(SPEC.format(servers=servers))
    return load(file, overrides=[f'spark.master="{master}"'] if master else [])


def test_settings_are_read_as_java_reads_them(defaults: Defaults) -> None:
    """Breaks when a separator, a comment or a line that goes on is taken for something else."""
    defaults(
        "# spark.a 1\n! spark.b 2\n\n"
        "spark.master   spark://h:7077  \n"
        "spark.equals=1\n"
        "  spark.colon : 2\r\n"
        "spark.java.options -Dx=1 -Dy:2 # no comment\n"
        "spark.long a,\\\n    b\n"
        "spark.odd C:\\\\x\\u0041\n"
        "spark.empty\n"
        "other.key 1\n"
    )
    assert spark_defaults() == {
        "spark.master": "spark://h:7077",
        "spark.equals": "1",
        "spark.colon": "2",
        "spark.java.options": "-Dx=1 -Dy:2 # no comment",
        "spark.long": "a,b",
        "spark.odd": "C:\\xA",
        "spark.empty": "",
    }


def test_where_the_file_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pips = conf_folder()
    assert pips is not None
    assert pips.parent.name == "pyspark"
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert conf_folder() == tmp_path / "conf"
    assert conf_folder(pip_only=True) == pips
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "site"))
    assert conf_folder() == conf_folder(pip_only=True) == tmp_path / "site"
    assert spark_defaults() == {}


@pytest.mark.parametrize(
    ("master", "text", "wanted"),
    [
        (None, "", "local[*,4]"),
        (None, "spark.master yarn", "yarn"),
        (None, "spark.master local[2]", "local[2,4]"),
        ("spark://h:7077", "spark.master yarn", "spark://h:7077"),
    ],
)
def test_the_spec_then_the_site_then_this_machine(
    master: str | None, text: str, wanted: str, defaults: Defaults, tmp_path: Path
) -> None:
    """Breaks when a spec that names no master runs here although the site has a cluster."""
    defaults(text)
    assert spark_master(spec_of(tmp_path, master)) == wanted


def test_what_spark_submit_was_given_goes_over_the_sites(defaults: Defaults, tmp_path: Path) -> None:
    """Breaks when `spark-submit --master yarn` runs on this machine; its local[2], too, is started with retries."""
    defaults("spark.master spark://h:7077")
    assert spark_master(spec_of(tmp_path), "yarn") == "yarn"
    assert spark_master(spec_of(tmp_path), "local[2]") == "local[2,4]"
    assert spark_master(spec_of(tmp_path, "local[3]"), "yarn") == "local[3,4]"
    with pytest.raises(SpecError, match=r"spark-submit: spark\.master: Spark 4 does not run on Mesos"):
        spark_master(spec_of(tmp_path), "mesos://h:5050")
    with pytest.raises(SpecError, match="the executors of yarn may run on others"):
        refuse_embedded_elsewhere(spec_of(tmp_path, servers="embedded"), "yarn")


def test_a_master_of_the_site_that_is_none(defaults: Defaults, tmp_path: Path) -> None:
    defaults("spark.master mesos://h:5050")
    with pytest.raises(SpecError, match=r"spark-defaults\.conf: spark\.master: Spark 4 does not run on Mesos"):
        spark_master(spec_of(tmp_path))


def test_executors_elsewhere_do_not_find_the_embedded_broker(defaults: Defaults, tmp_path: Path) -> None:
    """Breaks when a run waits for brokers at 127.0.0.1 of other machines; exit 2 before anything is started."""
    refuse_embedded_elsewhere(spec_of(tmp_path, servers="embedded"))
    refuse_embedded_elsewhere(spec_of(tmp_path, "local-cluster[2,1,1024]", servers="embedded"))
    defaults("spark.master yarn")
    refuse_embedded_elsewhere(spec_of(tmp_path))
    with pytest.raises(SpecError, match="the executors of yarn may run on others") as raised:
        refuse_embedded_elsewhere(spec_of(tmp_path, servers="embedded"))
    assert (raised.value.exit_code, raised.value.code) == (2, "embedded-elsewhere")


@pytest.mark.parametrize(
    ("master", "elsewhere", "at"),
    [
        ("local", False, []),
        ("local[*]", False, []),
        ("local[2, 8]", False, []),
        ("local-cluster[2,1,1024]", False, []),
        ("yarn", True, []),
        ("k8s://https://h:6443", True, []),
        ("k8s://h", True, []),
        ("spark://h:7077", True, [("h", 7077)]),
        ("spark://a:1,[::1]:2", True, [("a", 1), ("::1", 2)]),
    ],
)
def test_masters_that_spark_knows(master: str, elsewhere: bool, at: list[tuple[str, int]]) -> None:
    assert master_problem(master) is None
    assert on_other_machines(master) == elsewhere
    assert addresses(master) == at


@pytest.mark.parametrize(
    "master",
    (
        *(
            "",
            "local[x]",
            "local[0]",
            "locale",
            "local-cluster",
            "local-cluster[2]",
            "spark://",
            "spark://h",
            "spark:h:1",
        ),
        *(
            "yarn-client",
            "YARN",
            "k8s://",
            "k8s",
            "mesos://h:1",
            "sc://h",
            "spark://h:7077,",
            "spark://h:0",
            "spark://h:70777",
            "http://h",
        ),
    ),
)
def test_masters_that_are_none(master: str) -> None:
    assert master_problem(master)


@pytest.mark.parametrize(
    ("master", "attempts", "executors"),
    [
        ("local[2,3]", 3, None),
        ("local[*, 8 ]", 8, None),
        ("local[2]", None, None),
        ("yarn", None, None),
        ("local-cluster[2,1,1024]", None, 2),
    ],
)
def test_what_a_master_says_of_attempts_and_executors(master: str, attempts: int | None, executors: int | None) -> None:
    """Breaks when a task takes an attempt for its last one that is not, or the other way round."""
    assert (attempts_of_tasks(master), executors_of_local_cluster(master)) == (attempts, executors)
