"""examples/ and the code of docs/python.md, with a real Kafka and a real Spark.

Airflow and Dagster are used where they are installed; otherwise small stand-ins take their place, and the functions of the
examples are called as the schedulers would call them. The notebook's cells and the page's code run in a new Python.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.support.harness import read_committed

pytestmark = [pytest.mark.slow, pytest.mark.in_turns("examples that seldom change")]

ROOT = Path(__file__).parents[2]
DAY = "2026-11-20"


class Examples:
    """The examples in a folder of their own, with a topic of their own."""

    def __init__(self, folder: Path, servers: str) -> None:
        self.folder = shutil.copytree(ROOT / "examples", folder / "examples")
        self.servers = servers
        self.topic = f"orders-{uuid.uuid4().hex[:6]}"
        spec = self.folder / "orders.toml"
        text = spec.read_text().replace('name = "orders-', f'name = "{self.topic}-')
        spec.write_text(text.replace('topic = "orders"', f'topic = "{self.topic}"'))

    @property
    def data(self) -> Path:
        return self.folder / "orders" / DAY / "part-0.jsonl"

    def ids(self) -> list[int]:
        """Return the ids in the topic."""
        return sorted(json.loads(record.value or b"")["id"] for record in read_committed(self.servers, self.topic))

    def load(self, name: str) -> ModuleType:
        """Import one of them."""
        found = importlib.util.spec_from_file_location(f"example_{name}", self.folder / f"{name}.py")
        assert found is not None and found.loader is not None
        module = importlib.util.module_from_spec(found)
        found.loader.exec_module(module)
        return module

    def python(self, code: str) -> subprocess.CompletedProcess[str]:
        """Run code in a new Python, in the folder."""
        return subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, cwd=self.folder, timeout=240
        )


@pytest.fixture
def examples(tmp_path: Path, servers: str, monkeypatch: pytest.MonkeyPatch) -> Examples:
    monkeypatch.setenv("ORDERS_BROKERS", servers)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return Examples(tmp_path, servers)


def put_in_place(monkeypatch: pytest.MonkeyPatch, name: str, **names: Any) -> None:
    """Have `import name` give a stand-in with these names."""
    module = ModuleType(name)
    vars(module).update(names)
    monkeypatch.setitem(sys.modules, name, module)


def installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


class FailError(Exception):
    """The stand-in of Airflow's AirflowFailException."""


def airflow_stands_in(monkeypatch: pytest.MonkeyPatch, called: list[str]) -> None:
    """Have a DAG that calls its function, and tasks whose order `>>` notes."""

    class Task:
        def __init__(self, name: str) -> None:
            self.name = name

        def __rshift__(self, other: Task) -> Task:
            called.append(f"{self.name} >> {other.name}")
            return other

    def dag(**_: Any) -> Callable[[Any], Any]:
        return lambda function: function

    def task(function: Any) -> Any:
        return lambda day: Task(f"{function.__name__}({day})")

    put_in_place(monkeypatch, "airflow")
    put_in_place(monkeypatch, "airflow.sdk.exceptions", AirflowFailException=FailError)
    put_in_place(monkeypatch, "airflow.sdk", dag=dag, task=task)


def test_the_dag_of_airflow(examples: Examples, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    stands_in = not installed("airflow")
    if stands_in:
        airflow_stands_in(monkeypatch, called)
    module = examples.load("airflow_dag")
    if stands_in:
        assert called == ["load_day({{ ds }}) >> verify_day({{ ds }})"]
    assert module.load_day(DAY)["records_sent"] == 3
    assert module.load_day(DAY)["records_sent"] == 0, "a task that is cleared sends nothing twice"
    assert module.verify_day(DAY)["verdict"] == "verified"
    assert examples.ids() == [1, 2, 3]

    with examples.data.open("a") as file:
        file.write('{"id": 4, "user": "ada", "amount": 1}\n')
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match="changed"):  # exit code 12: a retry does not help
        module.load_day(DAY)


def dagster_stands_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have assets that are their functions, and values that keep their arguments."""

    class Told(Exception):
        def __init__(self, *_: object, **told: Any) -> None:
            self.told = told

    put_in_place(
        monkeypatch,
        "dagster",
        AssetExecutionContext=object,
        DailyPartitionsDefinition=SimpleNamespace,
        Definitions=SimpleNamespace,
        Failure=type("Failure", (Told,), {}),
        MaterializeResult=SimpleNamespace,
        RetryRequested=type("RetryRequested", (Told,), {}),
        asset=lambda **_: lambda function: function,
    )


def test_the_asset_of_dagster(examples: Examples, monkeypatch: pytest.MonkeyPatch) -> None:
    if installed("dagster"):
        import dagster

        module = examples.load("dagster_job")
        done = dagster.materialize([module.orders], partition_key=DAY)
        (event,) = done.get_asset_materialization_events()
        metadata = {name: value.value for name, value in event.materialization.metadata.items()}
    else:
        dagster_stands_in(monkeypatch)
        module = examples.load("dagster_job")
        told: list[str] = []
        context = SimpleNamespace(partition_key=DAY, log=SimpleNamespace(info=told.append))
        metadata = module.orders(context).metadata
        assert any("starting Spark" in text for text in told)
        context.partition_key = "2026-11-21"  # there are no files of this day
        with pytest.raises(module.Failure) as raised:
            module.orders(context)
        assert raised.value.told["allow_retries"] is False
    assert (metadata["records_sent"], metadata["verdict"], metadata["topic"]) == (3, "verified", examples.topic)
    assert examples.ids() == [1, 2, 3]


def test_the_cells_of_the_notebook(examples: Examples) -> None:
    cells = json.loads((examples.folder / "notebook.ipynb").read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    shown = "\nprint(report.records_sent, plan.work_pending, audit.verdict)"
    done = examples.python("\n".join(code) + shown)
    assert done.returncode == 0, done
    assert done.stdout.splitlines()[-1] == "3 False verified"
    assert examples.ids() == [1, 2, 3]


def test_the_code_of_the_page(examples: Examples) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.DOTALL)
    assert len(blocks) == 4
    done = examples.python("\n".join(blocks))
    assert done.returncode == 0, done
    assert examples.ids() == [1, 2, 3]
