"""Every command that a message names is parsed by the command line, and those that write files never write over one."""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import eosingest
from eosingest.cli import main as cli
from eosingest.cli.result import Action
from eosingest.sources.files.bytes import magic
from eosingest.sources.files.bytes.text_blocks import BadTextError, Block
from eosingest.sources.files.formats.json_scan import JsonScan
from tests.support.programs import find_program

ROOT = Path(eosingest.__file__).parent
_VERB = (
    "init|schema|check|plan|preview|run|status|verify|prepare|package|submit-script|(?:broker|spark) (?:up|down|status)"
)
# A verb with what belongs to it: options, placeholders in capitals, paths, and places of an f-string.
_COMMAND = re.compile(rf"\beosingest ((?:{_VERB})(?: (?:--[a-z-]+|[A-Z]+|/[\w./]+|\{{.*?\}}))*)(?![a-z])")


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)  # type: ignore[misc]
    return None


def _texts() -> Iterator[tuple[str, str]]:
    """Yield the strings of the product that are no docstrings, with their places."""
    for file in sorted(ROOT.rglob("*.py")):
        tree = ast.parse(file.read_text())
        parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            text = _text(node)
            if text is not None and id(node) not in parts | docstrings:
                yield f"{file.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}", text


COMMANDS = sorted({found[1] for _, text in _texts() for found in _COMMAND.finditer(text)})


def test_the_search_finds_commands() -> None:
    assert len(COMMANDS) > 15
    assert {"broker up", "run SPEC --from-scratch", "verify SPEC --against-source"} <= set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_a_message_is_parsed(command: str) -> None:
    """Breaks with a verb or an option that does not exist."""
    command = re.sub(r"\b[A-Z]+\b", "a.toml", command).replace("{}", "a.toml")
    assert isinstance(cli._parse(shlex.split(command)), Action)


def test_extras_of_messages_exist() -> None:
    """Breaks where `pip install 'eosingest[extra]'` names an extra that the package does not have."""
    extras = tomllib.loads((ROOT.parent / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = {name for _, text in _texts() for name in re.findall(r"eosingest\[([a-z0-9-]+)\]", text)}
    assert named and named <= set(extras)


def test_no_command_writes_to_a_name_made_of_its_input() -> None:
    """Breaks where a copy could match source.path next to its original: a run would send its records twice."""
    written = [(place, text) for place, text in _texts() if re.search(r"\bFILE > FILE", text)]
    assert not written


def test_the_spec_of_a_user_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs the command that `init` names where the spec is there already."""
    monkeypatch.chdir(tmp_path)
    Path("or ders.csv").write_text("a,b\n1,2\n")
    mine = {"mine.toml": "mine", "mine-2.toml": "mine too"}
    for name, text in mine.items():
        Path(name).write_text(text)
    assert cli.exit_code_of(["init", "--from", "or ders.csv", "mine.toml"]) == 2
    said = re.search(r"eosingest (init[^;]*);", capsys.readouterr().err.replace("\n", " "))
    assert said is not None
    assert cli.exit_code_of(shlex.split(said[1])) == 0
    assert {name: Path(name).read_text() for name in mine} == mine
    assert "or ders.csv" in Path("mine-3.toml").read_text()


ONE_A_LINE = [('[\n{"n": 1},\n{"n": 2}]\n', "'.[]'"), ('{"n":\n1}\n{"n": 2}\n', "."), ('{"n": 1}{"n": 2}\n', ".")]


@pytest.mark.parametrize(("text", "program"), ONE_A_LINE)
def test_the_command_for_json_that_is_not_lines(tmp_path: Path, text: str, program: str) -> None:
    """Runs the command of the hint on a copy: the original stays, and the new file has one record a line."""
    jq = find_program("jq")
    block = Block(text=text, offset=0, line=1)
    with pytest.raises(BadTextError) as raised:
        JsonScan({}).check([block])
    command = re.search(r"jq -c .* FILE > FOLDER/COPY", raised.value.hint)
    assert command is not None, raised.value.hint
    assert f"jq -c {program} FILE" in command[0]
    (tmp_path / "data").mkdir()
    (tmp_path / "copy").mkdir()
    (tmp_path / "data/a.json").write_text(text)
    line = command[0].replace("jq", jq, 1).replace("FILE", "data/a.json").replace("FOLDER/COPY", "copy/a.json")
    subprocess.run(line, shell=True, cwd=tmp_path, check=True, timeout=60)
    assert (tmp_path / "data/a.json").read_text() == text
    assert (tmp_path / "copy/a.json").read_text() == '{"n":1}\n{"n":2}\n'
    assert [file.name for file in (tmp_path / "data").iterdir()] == ["a.json"]


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_the_command_for_an_archive(tmp_path: Path, kind: str) -> None:
    """Runs the command of the hint: the archive stays, what it holds is in a new folder, and no file is written over."""
    (tmp_path / "in put").mkdir()
    (tmp_path / "a.csv").write_text("a\n1\n")
    archive = tmp_path / "in put" / f"or der's.{kind}"
    shutil.make_archive(str(archive.with_suffix("")), kind, tmp_path, "a.csv")
    before = archive.read_bytes()
    refused = magic.refusal(str(archive), None, before[: magic.HEAD_BYTES])
    assert refused is not None
    command = refused[1].partition("source.path: ")[2]
    unpacked = tmp_path / "in put" / "or der's-unpacked" / "a.csv"
    subprocess.run(command, shell=True, cwd=tmp_path, check=True, timeout=60, stdin=subprocess.DEVNULL)
    assert unpacked.read_text() == "a\n1\n"
    unpacked.write_text("mine")
    subprocess.run(command, shell=True, cwd=tmp_path, check=False, timeout=60, stdin=subprocess.DEVNULL)
    assert unpacked.read_text() == "mine"
    assert archive.read_bytes() == before
