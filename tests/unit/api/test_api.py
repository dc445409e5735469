"""The Python API without a broker: what `import eosingest` loads and names, specs from Python, errors of another process."""

from __future__ import annotations

import ast
import inspect
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import eosingest
from eosingest.api.process import perform
from eosingest.cli.run import result_of as run_result
from eosingest.errors import EosingestError, FatalError, IncompleteError, InterruptedRunError, SpecError, TemporaryError
from eosingest.report.model import RunReport
from eosingest.report.wording import Wording
from tests.support.processes import processes_below

PACKAGE = Path(eosingest.__file__).parent
TABLES: dict[str, Any] = {
    "name": "orders",
    "source": {"format": "text", "path": ("a.txt", Path("b.txt"))},
    "sink": {"bootstrap_servers": "localhost:1", "topic": "orders", "properties": {"linger.ms": 5}},
}


def test_an_import_loads_no_other_module_of_ours_and_no_library() -> None:
    code = "import __future__, importlib, logging, sys, typing\nstandard = set(sys.modules)\n"
    code += "import eosingest\nprint(*sorted(set(sys.modules) - standard))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PACKAGE.parent, timeout=60)
    assert done.stdout.split() == ["eosingest"], done


def test_every_name_is_there_and_typed_and_described() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    typed = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.If)
        for imported in node.body
        if isinstance(imported, ast.ImportFrom)
        for alias in imported.names
    }
    assert typed == set(eosingest.__all__) - {"__version__"}
    assert dir(eosingest) == sorted(eosingest.__all__)
    for name in sorted(typed):
        assert inspect.getdoc(getattr(eosingest, name)), name
    with pytest.raises(AttributeError, match="no attribute 'rnu'"):
        eosingest.rnu  # type: ignore[attr-defined]  # noqa: B018
    assert (PACKAGE / "py.typed").is_file()


def test_the_json_of_a_run_is_that_of_the_command_line() -> None:
    wording = Wording("file", "files", "bytes", "", "", "", "")
    report = RunReport("orders", 3, "orders", "localhost:1", 0, wording, 1, 1, 1, 1, 0, 0, 1.0)
    data = run_result(report).data
    assert data == report.to_json()
    assert data["skipped"] is False


def test_every_documented_error_is_a_name_of_the_package() -> None:
    from eosingest import errors

    classes = {name for name, value in vars(errors).items() if inspect.isclass(value) and name[0].isupper()}
    assert {name for name in classes if name.endswith(("Error", "Problem"))} <= set(eosingest.__all__)


def test_a_spec_of_a_dict_is_the_spec_of_its_toml(tmp_path: Path) -> None:
    text = (
        'name = "orders"\n[source]\nformat = "text"\npath = ["a.txt", "b.txt"]\n'
        '[sink]\nbootstrap_servers = "localhost:1"\ntopic = "orders"\nproperties = { "linger.ms" = 5 }\n'
    )
    file = tmp_path / "orders.toml"
    file.write_text(text)
    of_dict = eosingest.Spec.from_dict(TABLES, folder=tmp_path)
    for other in (eosingest.Spec.from_toml(text, folder=tmp_path), eosingest.Spec.load(file)):
        assert (other.model_dump(), other.directory) == (of_dict.model_dump(), of_dict.directory)
    assert of_dict.directory == tmp_path
    assert TABLES["sink"]["properties"] == {"linger.ms": 5}, "the caller's dict is not changed"
    again = pickle.loads(pickle.dumps(of_dict))
    assert (again, again.directory) == (of_dict, tmp_path)


def test_params_and_overrides() -> None:
    tables = {**TABLES, "name": "orders-${param:date}"}
    overrides = {"sink.topic": "5", "sink.properties.sasl.password": "0123", "source.path": ["c.txt"]}
    spec = eosingest.Spec.from_dict(tables, params={"date": "2026-11-20"}, overrides=overrides)
    assert spec.name == "orders-2026-11-20"
    assert spec.sink.topic == "5", "a text stays a text"
    assert spec.sink.properties == {"linger.ms": "5", "sasl.password": "0123"}
    assert list(spec.source.path) == ["c.txt"]


def test_all_problems_of_a_spec_come_at_once() -> None:
    tables = {**TABLES, "sink": {"topci": "orders"}}
    with pytest.raises(SpecError) as raised:
        eosingest.Spec.from_dict(tables, overrides={"transaction.timeout": "soon", "no key": 1})
    said = "\n".join(raised.value.problems)
    assert '<dict>: sink.topci: unknown key; did you mean "topic"?' in said
    assert "<dict>: sink.bootstrap_servers: missing" in said
    assert "overrides: transaction.timeout: " in said
    assert "'no key' is no dotted key" in said
    assert raised.value.exit_code == 2
    with pytest.raises(SpecError, match=r"<toml>:2: source.format"):
        eosingest.Spec.from_toml('name = "a"\n[source]\n[sink]\n')
    with pytest.raises(SpecError, match="no such file"):
        eosingest.Spec.load("-")  # standard input is for the command line


def test_an_error_pickles_with_the_report_that_holds_it() -> None:
    error = IncompleteError("1 split is left", item="a.txt")
    wording = Wording("file", "files", "bytes", "", "", "", "")
    error.report = RunReport("orders", 3, "orders", "localhost:1", 3, wording, 1, 0, 1, 0, 0, 0, 1.0, (error,))
    again = pickle.loads(pickle.dumps(error))
    assert (again.message, again.item, again.report.run) == ("1 split is left", "a.txt", 3)
    assert again.report.errors[0] is again


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> eosingest.Spec:
    monkeypatch.setenv("EOSINGEST_HOME", str(tmp_path / "home"))
    (tmp_path / "a.txt").write_text("one\n")
    return eosingest.Spec.from_dict(TABLES, folder=tmp_path, overrides={"source.path": "a.txt"})


@pytest.fixture
def nothing_is_left(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Whatever a test does: nothing is printed, no process stays, and this process is as it was."""
    before = dict(os.environ), list(sys.path), [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    others = {process.pid for process in processes_below(os.getpid())}  # servers that the tests share
    yield
    assert [process for process in processes_below(os.getpid()) if process.pid not in others] == []
    after = dict(os.environ), list(sys.path), [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    assert after[1:] == before[1:]
    assert {**after[0], "PYTEST_CURRENT_TEST": ""} == {**before[0], "PYTEST_CURRENT_TEST": ""}
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("nothing_is_left")
class TestTheProcess:
    def test_its_error_is_raised_here(self, spec: eosingest.Spec) -> None:
        sink = {**TABLES["sink"], "properties": {"sasl.mechanism": "OAUTHBEARER"}}
        refused = eosingest.Spec.from_dict({**TABLES, "sink": sink}, folder=spec.directory)
        with pytest.raises(SpecError, match="is missing") as raised:
            eosingest.run(refused)
        assert (raised.value.code, raised.value.exit_code, raised.value.report) == ("bad-property", 2, None)

    def test_a_bug_comes_with_its_traceback(self, spec: eosingest.Spec) -> None:
        with pytest.raises(EosingestError, match="KeyError: 'no-such-verb'") as raised:
            perform("no-such-verb", spec, {})
        assert (type(raised.value), raised.value.exit_code) == (EosingestError, 1)
        assert "Traceback" in raised.value.__notes__[0]

    @pytest.mark.parametrize(("verb", "error"), [("run", IncompleteError), ("plan", TemporaryError)])
    def test_one_that_ends_without_an_answer(
        self, spec: eosingest.Spec, verb: str, error: type[EosingestError], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "executable", "/bin/false")
        with pytest.raises(error, match="ended with exit code 1 before it had reported") as raised:
            perform(verb, spec, {})
        assert raised.value.code == "process-ended"

    def test_one_that_cannot_be_started(self, spec: eosingest.Spec, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "executable", "/no/such/python")
        with pytest.raises(FatalError, match="a process cannot be started"):
            eosingest.plan(spec)

    def test_an_exception_of_a_signal_handler_ends_a_run_in_order_and_is_raised(self, spec: eosingest.Spec) -> None:
        """As Airflow ends a task: its handler of SIGTERM raises. The broker of this run does not answer."""

        class EndedError(Exception):
            pass

        def end(_number: int, _frame: object) -> None:
            raise EndedError

        before = signal.signal(signal.SIGALRM, end)
        signal.setitimer(signal.ITIMER_REAL, 2.0)
        try:
            with pytest.raises(EndedError) as raised:
                eosingest.run(spec)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        (note,) = raised.value.__notes__
        assert note.startswith("eosingest: stopped by SIGTERM"), note

    def test_a_stop_ends_a_run_in_a_thread(self, spec: eosingest.Spec) -> None:
        stop = threading.Event()
        raised: list[BaseException] = []

        def work() -> None:
            try:
                eosingest.run(spec, stop=stop)
            except InterruptedRunError as error:
                raised.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join(2.0)
        assert thread.is_alive(), "the broker does not answer, and the run waits for it"
        stop.set()
        thread.join(60.0)
        assert [error.exit_code for error in raised if isinstance(error, InterruptedRunError)] == [128 + signal.SIGTERM]

    def test_a_stop_before_a_run_has_begun(self, spec: eosingest.Spec) -> None:
        stop = threading.Event()
        stop.set()
        with pytest.raises(InterruptedRunError, match="stopped by SIGTERM; run had sent nothing"):
            eosingest.run(spec, stop=stop)
