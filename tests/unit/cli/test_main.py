"""The command line as a shell sees it: verbs that need no Kafka, usage errors, environment variables, exit codes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
from jsonschema import Draft7Validator

import eosingest
from eosingest import __version__
from eosingest.app.warm import WarmStatus
from eosingest.cli import main as cli
from eosingest.cli.options import behind_the_verb, output_asked_for
from eosingest.cli.render import Renderer
from eosingest.cli.result import Result
from eosingest.cli.run import IfRunning
from eosingest.cli.spark import usable
from eosingest.errors import FatalError
from eosingest.spec import TEMPLATE, model

SPEC = """\
name = "orders-${param:date}"

[source]
format = "json"
path = "data/*.jsonl"

[sink]
bootstrap_servers = "localhost:9092"
topic = "orders"
create = { partitions = 6 }

[sink.properties]
security.protocol = "SASL_SSL"
sasl.mechanism = "PLAIN"
sasl.username = "me"
sasl.password = "${env:ORDERS_PASSWORD}"
"""


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("EOSINGEST_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("EOSINGEST_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ORDERS_PASSWORD", "hunter2")
    monkeypatch.setenv("PYTHONPATH", str(Path(eosingest.__file__).parent.parent))
    monkeypatch.chdir(tmp_path)


@pytest.fixture()
def spec(tmp_path: Path) -> str:
    (tmp_path / "orders.toml").write_text(SPEC)
    return "orders.toml"


def envelope(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    out = capsys.readouterr().out
    assert out.count("\n") == 1 and out.endswith("\n"), out
    parsed = json.loads(out)
    assert list(parsed) == ["version", "command", "status", "exit_code", "data", "errors"]
    assert parsed["version"] == 1
    for error in parsed["errors"]:
        assert list(error) == ["code", "message", "hint"]
    return dict(parsed)


def process(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "eosingest", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)


def test_the_end_of_the_process_searches_no_cycles() -> None:
    """The searches took 0.2 s at the end of each command."""
    code = (
        "import atexit, gc; from eosingest.cli.main import main; atexit.register(lambda: print(gc.get_freeze_count()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; main()", "--version"], capture_output=True, text=True, timeout=60
    )
    assert int(done.stdout.split()[-1]) > 10_000, done


# ---- help, version ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["run", "--help"], ["broker", "down", "-h"]])
def test_help_is_on_stdout_and_plain(arguments: list[str]) -> None:
    done = process(*arguments, env={**os.environ, "FORCE_COLOR": "1", "GITHUB_ACTIONS": "true"})
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: eosingest")
    assert "\x1b" not in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["--version"], ["broker", "status", "--help"]])
def test_help_loads_neither_spark_nor_kafka_nor_pydantic(arguments: list[str]) -> None:
    # Typer itself takes pydantic to parse the value of a flag before the verb, so only the first help does without.
    code = f"""
import sys
from eosingest.cli.main import exit_code_of
exit_code = exit_code_of({arguments!r})
heavy = {{"pyspark", "kafka", "confluent_kafka", "pyarrow", "pandas", "numpy", "rich"}} & set(sys.modules)
if {arguments!r} == ["--help"]:
    heavy |= {{"pydantic"}} & set(sys.modules)
sys.exit(f"loaded: {{heavy}}" if heavy else exit_code)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.exit_code_of(["--version"]) == 0
    assert capsys.readouterr().out == f"eosingest {__version__}\n"
    assert cli.exit_code_of(["--version", "run", "nothing-is-run", "--output", "json"]) == 0
    assert envelope(capsys)["data"] == {"eosingest": __version__}


def test_module_and_main_exit_with_the_code(spec: str) -> None:
    assert process("check", spec).returncode == 2
    assert process("check", spec, "--param", "date=1").returncode == 0


# ---- usage errors ----------------------------------------------------------------------------------------------------

USAGE_ERRORS = [
    ([], "eosingest", "no verb given"),
    (["frob"], "eosingest", "No such command 'frob'"),
    (["broker"], "broker", "no verb given"),
    (["broker", "frob"], "broker", "No such command 'frob'"),
    (["run"], "run", "Missing argument 'SPEC'"),
    (["plan", "x.toml", "--nope"], "plan", "No such option: --nope"),
    (["run", "x.toml", "--if-running", "wait"], "run", "'wait' is not one of 'fence', 'fail', 'skip'"),
    (["check", "x.toml", "--param", "a=1", "--param", "hunter2"], "check", "number 2 of 2"),
]


@pytest.mark.parametrize(("arguments", "command", "words"), USAGE_ERRORS)
def test_usage_errors_as_text(
    arguments: list[str], command: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.exit_code_of(arguments) == 2
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err.startswith("error: ")
    assert words in written.err
    assert "\nhint: " in written.err
    assert "Value error" not in written.err
    assert "hunter2" not in written.err


@pytest.mark.parametrize(("arguments", "command", "words"), USAGE_ERRORS)
def test_usage_errors_as_json(
    arguments: list[str],
    command: str,
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EOSINGEST_OUTPUT", "json")
    assert cli.exit_code_of(arguments) == 2
    said = envelope(capsys)
    assert (said["command"], said["status"], said["exit_code"], said["data"]) == (command, "error", 2, None)
    assert [error["code"] for error in said["errors"]] == ["usage"]
    assert words in said["errors"][0]["message"]


@pytest.mark.parametrize(
    ("arguments", "variable", "output"),
    [
        (["run", "x", "--output", "json"], "", "json"),
        (["run", "--output=json", "x"], "", "json"),
        (["--output", "json", "run", "x"], "", "json"),
        (["run", "x"], "json", "json"),
        (["run", "x", "--output", "text"], "json", "text"),
        (["run", "--output", "json", "--output", "text"], "", "text"),
        (["run", "--", "--output", "json"], "", "text"),
        (["run", "--output"], "", "text"),
        (["run"], "yaml", "text"),
    ],
)
def test_output_is_known_before_parsing(
    arguments: list[str], variable: str, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EOSINGEST_OUTPUT", variable)
    assert output_asked_for(arguments) == output


@pytest.mark.parametrize("arguments", [["--output", "json", "schema"], ["schema", "--output", "json"]])
def test_output_may_stand_before_or_behind_the_verb(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.exit_code_of(arguments) == 0
    assert envelope(capsys)["command"] == "schema"


def test_an_unknown_output_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.exit_code_of(["schema", "--output", "yaml"]) == 2
    assert "'yaml' is not one of 'text', 'json'" in capsys.readouterr().err


# ---- environment variables -------------------------------------------------------------------------------------------


def _options(command: Any) -> list[Any]:
    found = [param for param in command.params if param.param_type_name == "option"]
    for inner in getattr(command, "commands", {}).values():
        found += _options(inner)
    return found


def test_every_flag_has_a_variable() -> None:
    options = _options(typer.main.get_command(cli._app()))
    variables = {}
    for option in options:
        flag = next(name for name in option.opts if name.startswith("--"))
        variable = f"EOSINGEST_{flag[2:].replace('-', '_').upper()}"
        variables[flag] = option.envvar == variable or f"env var: {variable}" in option.help
    for of_the_shell in ("--version", "--install-completion", "--show-completion"):
        assert variables.pop(of_the_shell) is False
    assert set(variables) == {
        "--output", "--verbose", "--param", "--set", "--exit-code", "--if-running", "--from-scratch", "--force",
        "--accept-change", "--accept-gap", "--max-bytes-per-second",
        "--against-source", "--remove-data", "--rows", "--spark", "--read", "--number", "--last",
        "--bootstrap-servers", "--from", "--quiet", "--idle",
    }  # fmt: skip
    assert all(variables.values()), variables


def test_if_running_takes_what_the_spec_takes() -> None:
    assert get_args(IfRunning) == get_args(model.IfRunning)


def test_param_and_set_variables_hold_one_a_line(
    spec: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EOSINGEST_PARAM", "date=mon\n")
    monkeypatch.setenv("EOSINGEST_SET", "sink.topic=orders-dev\n\ntransform.where=amount > 0 AND a = 'b, c'\n")
    assert cli.exit_code_of(["check", spec, "--output", "json"]) == 0
    data = envelope(capsys)["data"]
    assert (data["name"], data["topic"]) == ("orders-mon", "orders-dev")


def test_flags_win_over_the_variables_and_add_to_them(
    spec: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EOSINGEST_PARAM", "date=mon")
    monkeypatch.setenv("EOSINGEST_SET", "sink.topic=a\nsink.offsets_topic=kept")
    arguments = ["check", spec, "--param", "date=tue", "--set", "sink.topic=b", "--output", "json"]
    assert cli.exit_code_of(arguments) == 0
    data = envelope(capsys)["data"]
    assert (data["name"], data["topic"], data["offsets_topic"]) == ("orders-tue", "b", "kept")


def test_a_variable_of_a_choice_and_of_a_flag(
    spec: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EOSINGEST_IF_RUNNING", "wait")
    assert cli.exit_code_of(["run", spec]) == 2
    assert "EOSINGEST_IF_RUNNING" in capsys.readouterr().err
    Path("eosingest.toml").write_text("mine")
    monkeypatch.setenv("EOSINGEST_FORCE", "1")
    assert cli.exit_code_of(["init"]) == 0
    assert Path("eosingest.toml").read_text() == TEMPLATE


# ---- SPEC, and flags of every verb ------------------------------------------------------------------------------------


def test_the_usual_name_is_the_default(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(spec).rename("eosingest.toml")
    assert cli.exit_code_of(["check", "--param", "date=mon"]) == 0
    assert capsys.readouterr().out.startswith("eosingest.toml: the spec is valid\n")


def test_a_spec_from_standard_input() -> None:
    done = process("check", "-", "--param", "date=mon", input=SPEC)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "-: the spec is valid")
    wrong = process("check", "-", "--param", "date=mon", input=SPEC.replace("topic", "topci"))
    assert wrong.returncode == 2
    assert "-:9: sink.topci: unknown key" in wrong.stderr


@pytest.mark.parametrize(
    ("arguments", "moved"),
    [
        (["-v", "status", "x"], ["status", "x", "-v"]),
        (["--output", "json", "-q", "run", "x", "--", "y"], ["--output", "json", "run", "x", "-q", "--", "y"]),
        (["--quiet", "--verbose", "broker", "up"], ["broker", "up", "--quiet", "--verbose"]),
        (["run", "-v"], ["run", "-v"]),
        (["-v"], ["-v"]),
        (["-v", "--version"], ["-v", "--version"]),
        ([], []),
    ],
)
def test_flags_of_every_verb_may_stand_before_it(arguments: list[str], moved: list[str]) -> None:
    assert behind_the_verb(arguments) == moved


def test_verbose_before_the_verb(spec: str) -> None:
    assert cli.exit_code_of(["-v", "check", spec, "--param", "date=mon"]) == 0


@pytest.mark.parametrize("arguments", [["-q", "check"], ["check", "--quiet"]])
def test_quiet_says_errors_only(spec: str, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.exit_code_of([*arguments, spec, "--param", "date=mon"]) == 0
    assert capsys.readouterr() == ("", "")
    assert cli.exit_code_of([*arguments, spec]) == 2
    assert capsys.readouterr().err.startswith("error: ")
    assert cli.exit_code_of([*arguments, spec, "--param", "date=mon", "--output", "json"]) == 0
    assert envelope(capsys)["command"] == "check"


def _commands(command: Any, name: str = "") -> list[tuple[str, Any]]:
    inner = getattr(command, "commands", {})
    found = [pair for verb, each in inner.items() for pair in _commands(each, f"{name} {verb}".strip())]
    return found if inner else [(name, command)]


def test_every_help_has_an_example() -> None:
    for name, command in _commands(typer.main.get_command(cli._app())):
        assert f"Example:\n  eosingest {name}" in command.epilog, name


def test_completion_is_offered() -> None:
    assert "--install-completion" in process("--help").stdout


# ---- init, schema, check, broker -------------------------------------------------------------------------------------


def test_init_writes_a_spec_that_check_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.exit_code_of(["init"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "wrote eosingest.toml",
        "wrote eosingest.schema.json",
        "Edit it, then: eosingest check eosingest.toml",
    ]
    assert Path("eosingest.toml").read_text() == TEMPLATE
    Draft7Validator.check_schema(json.loads(Path("eosingest.schema.json").read_text()))
    assert cli.exit_code_of(["check", "eosingest.toml"]) == 0


def test_init_overwrites_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    Path("jobs").mkdir()
    Path("jobs/eosingest.toml").write_text("mine")
    assert cli.exit_code_of(["init", "jobs"]) == 2
    assert "left as it is" in capsys.readouterr().err
    assert Path("jobs/eosingest.toml").read_text() == "mine"
    assert not Path("jobs/eosingest.schema.json").exists()


def test_init_beside_another_spec(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.exit_code_of(["init", "a.toml"]) == 0
    assert cli.exit_code_of(["init", "b.toml"]) == 0
    assert "note:" not in capsys.readouterr().err
    Path("eosingest.schema.json").write_text("{}")
    assert cli.exit_code_of(["init", "c.toml"]) == 0
    assert "eosingest.schema.json was there already and differs" in capsys.readouterr().err
    assert Path("eosingest.schema.json").read_text() == "{}"
    assert cli.exit_code_of(["init", "c.toml", "--force"]) == 0
    assert Path("eosingest.schema.json").read_text() != "{}"


def test_init_where_nothing_can_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.exit_code_of(["init", "no/such/folder/a.toml", "--output", "json"]) == 7
    assert envelope(capsys)["errors"][0]["code"] == "cannot-write"


def test_schema_is_the_json_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.exit_code_of(["schema"]) == 0
    text = json.loads(capsys.readouterr().out)
    assert text["title"] == "eosingest job spec"
    assert cli.exit_code_of(["schema", "--output", "json"]) == 0
    assert envelope(capsys)["data"] == text


def test_check_says_what_is_in_force_and_no_secret(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.exit_code_of(["check", spec, "--param", "date=mon", "--set", "source.path=//u:pw@h/x"]) == 0
    written = capsys.readouterr()
    assert written.out.startswith("orders.toml: the spec is valid\n")
    assert "topic        orders on localhost:9092, created with 6 partitions where missing" in written.out
    assert "sasl.password" in written.out
    assert "hunter2" not in written.out + written.err
    assert "pw" not in written.out
    assert "note: Java " in written.err


def test_check_says_every_mistake_once(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["check", spec, "--param", "date=mon", "--set", "sink.topci=x", "--set", "if_running='wait'"]
    assert cli.exit_code_of(arguments) == 2
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err.startswith("error: orders.toml: 2 problems\n")
    assert written.err.count("sink.topci") == 1
    assert written.err.count("if_running") == 1


def test_each_problem_of_a_spec_is_an_object_with_its_place(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = Path(spec).read_text().replace("[sink]", '[record]\nkey = "a b c"\n\n[sink]')
    Path(spec).write_text(text.replace("topic =", "topci ="))
    assert (
        cli.exit_code_of(["check", spec, "--param", "date=mon", "--set", "if_running='wait'", "--output", "json"]) == 2
    )
    errors = json.loads(capsys.readouterr().out)["errors"]
    assert [(error["key"], error["file"], error["line"]) for error in errors] == [
        ("record.key", "orders.toml", 8),
        ("sink.topic", "orders.toml", 10),
        ("sink.topci", "orders.toml", 12),
        ("if_running", None, None),
    ]
    assert errors[0]["code"] == "bad-expression"
    assert cli.exit_code_of(["plan", spec, "--param", "date=mon", "--output", "json"]) == 2
    assert [error["code"] for error in envelope(capsys)["errors"]] == ["spec-invalid"], "one error ends the other verbs"
    assert errors[2]["message"] == 'orders.toml:12: sink.topci: unknown key; did you mean "topic"?'


def test_spec_errors_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("check", "plan", "preview", "run", "status", "verify"):
        assert cli.exit_code_of([verb, "missing.toml", "--output", "json"]) == 2
        said = envelope(capsys)
        assert (said["command"], said["status"]) == (verb, "error")
        assert said["errors"] == [
            {
                "code": "spec-unreadable",
                "message": "missing.toml: no such file or directory",
                "hint": "eosingest init writes a spec to start from",
            }
        ]


def test_broker_status_and_down_without_a_broker(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert cli.exit_code_of(["broker", "status"]) == 0
    assert "is not running" in capsys.readouterr().out
    data = tmp_path / "home" / "broker" / "data"
    data.mkdir(parents=True)
    assert cli.exit_code_of(["broker", "down"]) == 0
    assert data.exists()
    capsys.readouterr()
    monkeypatch.setenv("EOSINGEST_REMOVE_DATA", "true")
    assert cli.exit_code_of(["broker", "down", "--output", "json"]) == 0
    assert not data.exists()
    said = envelope(capsys)
    assert said["command"] == "broker down"
    assert (said["data"]["running"], said["data"]["pid"]) == (False, None)


# ---- whatever happens ------------------------------------------------------------------------------------------------


def _fails(error: BaseException) -> Any:
    def step() -> Result:
        raise error

    return step


def test_an_error_becomes_a_result() -> None:
    result = cli._guarded(Renderer("text"), "run", _fails(FatalError("no", code="c", hint="h")))
    assert (result.command, result.exit_code, result.errors[0].code) == ("run", 7, "c")


def test_a_bug_shows_its_traceback_and_is_still_one_envelope(capsys: pytest.CaptureFixture[str]) -> None:
    renderer = Renderer("json")
    result = cli._guarded(renderer, "run", _fails(ValueError("broken")))
    assert renderer.result(result) == 1
    written = capsys.readouterr()
    assert "Traceback" in written.err
    assert "this is a bug in eosingest, please report it" in written.err
    said = json.loads(written.out)
    assert (said["status"], said["exit_code"]) == ("error", 1)
    assert said["errors"][0]["code"] == "bug"
    assert said["errors"][0]["message"] == "ValueError: broken"


def test_ctrl_c_before_a_run_is_130(capsys: pytest.CaptureFixture[str]) -> None:
    renderer = Renderer("text")
    assert renderer.result(cli._guarded(renderer, "check", _fails(KeyboardInterrupt()))) == 130
    assert capsys.readouterr().err == "error: interrupted\n"


def test_a_signal_wins_over_the_error_that_follows_it(spec: str) -> None:
    Path("data").mkdir()
    Path("data/a.jsonl").write_text("{}\n")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        servers = f"sink.bootstrap_servers=127.0.0.1:{silent.getsockname()[1]}"
        command = [sys.executable, "-m", "eosingest", "run", spec, "--param=date=mon", "--set", servers]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
            silent.settimeout(60)
            connection, _ = silent.accept()
            running.terminate()
            connection.close()
            silent.close()
            out, err = running.communicate(timeout=120)
    assert (running.returncode, out) == (143, "")
    first, second = err.splitlines()[:2]
    assert first == "note: stopping after a clean abort; a second signal ends at once"
    assert second.startswith("error: stopped by SIGTERM")


def test_a_closed_pipe_is_quiet() -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "eosingest", "schema"], stdout=write, stderr=subprocess.PIPE, timeout=60
        )
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_result_that_cannot_be_written_is_not_a_success() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "eosingest", "schema"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert done.returncode == 7
    assert done.stderr == "error: the result cannot be written to stdout: No space left on device\n"


def help_of(*verb: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "eosingest", *verb, "--help"], capture_output=True, text=True, timeout=60
    )
    return " ".join(done.stdout.split())


@pytest.mark.parametrize("verb", ["up", "status"])
def test_the_warm_jvm_has_no_spec_by_default(verb: str) -> None:
    """Breaks when help says that eosingest.toml is used, and it is not."""
    assert "without it, the settings of no job" in help_of("spark", verb)
    assert "by default eosingest.toml" in help_of("run")


def test_init_names_each_format_that_it_detects() -> None:
    from eosingest.sniff import _BY_SUFFIX
    from eosingest.sniff.input import CODECS

    told = help_of("init")
    assert [name for name in {*_BY_SUFFIX.values(), "text"} if name not in told] == []
    assert [suffix for suffix in set(CODECS) - {".zstd"} if suffix not in told] == []


@pytest.mark.parametrize(
    ("state", "line"),
    [
        ({"running": False}, "There is no warm JVM."),
        ({"running": True}, "A JVM is warm; a run from here uses it."),
        ({"running": True, "differs": "Java"}, "A JVM is warm; a run from here would not use it: it differs in Java."),
        ({"running": True, "used_by": 7}, "A JVM is warm; a run from here would not use it: the process 7 uses it."),
    ],
)
def test_whether_a_run_would_use_the_warm_jvm(state: dict[str, Any], line: str) -> None:
    """Breaks when a JVM that another command uses is said to be free."""
    assert usable(WarmStatus(folder=Path(), **state)) == line
