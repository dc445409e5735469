"""docs/security.md: each login that it shows is one that `check` takes and that the tests of a locked broker use."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tomli

from eosingest.kafka.config import ClientSettings, refuse_one_sided
from eosingest.kafka.librdkafka import check_properties
from eosingest.spec import load, resolve_properties
from tests.support.certificates import KEY_PASSWORD, Certificates

PAGE = (Path(__file__).parents[2] / "docs" / "security.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
SPEC = """\
name = "orders"
[source]
format = "text"
path = "data/*.txt"
[sink]
bootstrap_servers = "b:9093"
topic = "orders"
"""


def test_the_page_shows_each_kind_of_login() -> None:
    shown = [tomli.loads(block)["sink"]["properties"] for block in BLOCKS]
    assert len(shown) == 5
    assert {each.get("sasl.mechanism") for each in shown} == {None, "SCRAM-SHA-512", "OAUTHBEARER"}


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_both_clients_take_what_the_page_shows(tmp_path: Path, block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from eosingest.kafka.admin_config import tls

    Certificates(tmp_path / "certificates").make()
    for name in ("LOCKED_PASSWORD", "CLIENT_SECRET"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("KEY_PASSWORD", KEY_PASSWORD)
    (tmp_path / "orders.toml").write_text(SPEC + block)
    properties = resolve_properties(load(tmp_path / "orders.toml"))
    assert refuse_one_sided(properties) == []
    assert check_properties(ClientSettings("", properties)) is None
    assert tls.context(properties).check_hostname


def test_the_page_has_a_place_for_what_is_written_elsewhere() -> None:
    assert "## Keys as positions" in PAGE
