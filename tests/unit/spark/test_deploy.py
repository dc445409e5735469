"""deploy/: manifests by Kubernetes' own schemas, specs by `check`, settings by Spark's jars. No cluster runs them here."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from eosingest.spark.spark_defaults import spark_defaults
from eosingest.spec import load

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
KUBERNETES = "1.37"
ENVIRONMENT = ("POD_NAME", "POD_NAMESPACE", "POD_IP", "KAFKA_USER", "KAFKA_PASSWORD")
CERTIFICATE = Path(__file__).parents[1] / "tls/cert.pem"  # librdkafka looks at it
HADOLINT = Path(sys.executable).with_name("hadolint")


def manifests() -> dict[str, dict[str, Any]]:
    """Return every manifest by its kind; there are no two of a kind."""
    found = [each for file in sorted(DEPLOY.glob("kubernetes/*.yaml")) for each in yaml.safe_load_all(file.read_text())]
    by_kind = {each["kind"]: each for each in found}
    assert len(by_kind) == len(found) == 7
    return by_kind


def pods() -> Iterator[dict[str, Any]]:
    found = manifests()
    yield found["Job"]["spec"]["template"]
    yield found["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]


@pytest.fixture
def spec_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The spec of the ConfigMap, with the environment that the driver's pod has."""
    for name in ENVIRONMENT:
        monkeypatch.setenv(name, "10.0.0.1")
    file = tmp_path / "events.toml"
    text: str = manifests()["ConfigMap"]["data"]["events.toml"]
    file.write_text(text.replace("/etc/kafka/ca.crt", str(CERTIFICATE)))
    return file


@pytest.mark.parametrize("kind", manifests())
def test_manifests_are_as_kubernetes_has_them(kind: str) -> None:
    """Breaks when a field is misspelt or of another type: `strict` knows every one that there is."""
    kubernetes_validate.validate(manifests()[kind], KUBERNETES, strict=True)


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("CronJob", ("spec", "concurrencyPolcy"), "Forbid"),
        ("CronJob", ("spec", "schedule"), None),
        ("Job", ("spec", "backoffLimit"), "0"),
        ("Job", ("spec", "template", "spec", "containers", 0, "volumeMount"), []),
        ("Role", ("rules", 0, "verbs"), "create"),
    ],
)
def test_a_broken_manifest_is_found(kind: str, path: tuple[Any, ...], value: object) -> None:
    """The test above can fail."""
    manifest = manifests()[kind]
    at = manifest
    for part in path[:-1]:
        at = at[part]
    at[path[-1]] = value
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(manifest, KUBERNETES, strict=True)


def test_kubernetes_never_repeats_a_run() -> None:
    """Breaks when a run that was fenced (6, "do not retry") is started again and fences the newer one."""
    found = manifests()
    assert found["CronJob"]["spec"]["concurrencyPolicy"] == "Forbid"
    jobs = (found["Job"]["spec"], found["CronJob"]["spec"]["jobTemplate"]["spec"])
    assert [(job["backoffLimit"], job["template"]["spec"]["restartPolicy"]) for job in jobs] == [(0, "Never")] * 2


def test_both_jobs_are_one_pod() -> None:
    one, other = pods()
    assert one == other


def test_the_pod_has_what_the_spec_asks_for() -> None:
    """Breaks when one side names a path, a claim, a secret, an image or an environment that the other does not have."""
    text = manifests()["ConfigMap"]["data"]["events.toml"]
    pod = next(pods())["spec"]
    (driver,) = pod["containers"]
    assert set(re.findall(r"\$\{env:(\w+)\}", text)) <= {each["name"] for each in driver["env"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounts = {mount["mountPath"]: volumes[mount["name"]] for mount in driver["volumeMounts"]}
    claim = mounts["/data"]["persistentVolumeClaim"]["claimName"]
    assert claim == manifests()["PersistentVolumeClaim"]["metadata"]["name"]
    assert f'source.options.claimName" = "{claim}"' in text
    assert f'secrets.{mounts["/etc/kafka"]["secret"]["secretName"]}" = "/etc/kafka"' in text
    assert mounts["/etc/eosingest"]["configMap"]["name"] == manifests()["ConfigMap"]["metadata"]["name"]
    assert f'container.image" = "{driver["image"]}"' in text
    account = manifests()["ServiceAccount"]["metadata"]["name"]
    assert pod["serviceAccountName"] == account
    assert manifests()["RoleBinding"]["subjects"] == [{"kind": "ServiceAccount", "name": account}]
    assert manifests()["RoleBinding"]["roleRef"]["name"] == manifests()["Role"]["metadata"]["name"]


@pytest.mark.parametrize("where", ["kubernetes", "yarn"])
def test_the_specs_pass_check(where: str, spec_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`check` asks nobody."""
    monkeypatch.setenv("SPARK_CONF_DIR", str(DEPLOY / where))
    file = spec_file if where == "kubernetes" else DEPLOY / "yarn/events.toml"
    done = subprocess.run(
        [sys.executable, "-m", "eosingest", "check", file], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done


def test_every_setting_of_a_cluster_is_one_that_spark_knows(spec_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a key is misspelt: Spark passes over what it does not know, and executors see no files."""
    monkeypatch.setenv("SPARK_CONF_DIR", str(DEPLOY / "yarn"))
    keys = {*load(spec_file).spark.conf, *load(DEPLOY / "yarn/events.toml").spark.conf, *spark_defaults()}
    known = known_settings()
    unknown = [key for key in keys if key.startswith(("spark.kubernetes.", "spark.yarn.")) and not is_known(key, known)]
    assert unknown == []
    assert not is_known("spark.kubernetes.executor.volume.persistentVolumeClaim.source.mount.path", known)
    assert not is_known("spark.kubernetes.executor.volumes.persistentVolumeClaim.source.mount.paths", known)


def known_settings() -> set[str]:
    """Return the names in the classes of Spark's own jars that declare the settings of the two cluster managers."""
    spec = find_spec("pyspark")
    assert spec is not None and spec.submodule_search_locations
    jars = Path(spec.submodule_search_locations[0], "jars")
    names: set[str] = set()
    for jar, declared in (
        ("spark-kubernetes_*.jar", "org/apache/spark/deploy/k8s/Config$.class"),
        ("spark-yarn_*.jar", "org/apache/spark/deploy/yarn/config/package$.class"),
    ):
        (file,) = jars.glob(jar)
        code = zipfile.ZipFile(file).read(declared).decode("latin-1")
        names.update(re.findall(r"(?:spark\.|mount\.|options\.)[\w.-]+|persistentVolumeClaim", code))
    return names


def is_known(key: str, known: set[str]) -> bool:
    """Say whether a key is declared; keys of volumes and secrets have names of the user's within."""
    volume = re.fullmatch(r"(spark\.kubernetes\.(?:driver|executor)\.volumes\.)(\w+)\.[\w-]+\.(.+)", key)
    if volume is not None:
        return volume[1] in known and volume[2] == "persistentVolumeClaim" and volume[3] in known
    return key in known or re.sub(r"(?<=\.secrets\.).*", "", key) in known


def test_the_image_has_the_versions_that_were_tested() -> None:
    """Breaks when Spark's jars and pyspark would be of two versions, or the tests' Python is not the image's."""
    text = (DEPLOY / "Dockerfile").read_text()
    (pinned,) = re.findall(r"^pyspark==(.*)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert re.findall(r"^FROM apache/spark:([\d.]+)-", text, re.MULTILINE) == [pinned]
    assert "FROM python:3.11-" in text


def lint(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([HADOLINT, "-"], input=text, capture_output=True, text=True, timeout=60)


def test_the_dockerfile_is_clean() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    done = lint(text)
    assert (done.returncode, done.stdout) == (0, "")
    assert lint(text.replace("WORKDIR /opt/spark/work-dir", "RUN cd /opt")).returncode == 1, "the linter looks at it"
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE)
    assert [name for line in copied for name in line.split() if not (ROOT / name).exists()] == []
