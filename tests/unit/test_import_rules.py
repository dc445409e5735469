"""The house's plan, held by reading the source: who may import whom, and how long things may get."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "eosingest"
MODULES = sorted(PACKAGE.rglob("*.py"))
MAX_FUNCTION_LINES = 70
MAX_MODULE_LINES = 600

# Which of ours each part may import, beside itself. A part is a module or a folder right under eosingest/. What is
# written as folder.module is that module alone.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "paths": {"errors"},
    "names": set(),
    "failpoints": set(),
    "checksum": set(),
    "limits": {"kafka.protocols"},
    "interruption": {"errors"},
    "java": {"errors"},
    "host_lock": {"paths"},
    "last_words": {"errors", "paths"},
    "report": {"errors"},
    "sources": {"errors", "interruption"},
    "kafka": {"errors", "interruption"},
    "offsets": {"errors", "kafka.protocols", "sources.base"},
    "plan": {"errors", "offsets", "sources.base"},
    "pins": {"checksum", "errors", "offsets"},
    "audit": {"checksum", "kafka.protocols", "offsets"},
    "judgement": {"audit"},
    "sister_jobs": {"audit", "errors", "kafka.protocols", "offsets"},
    "audited_source": {"audit", "offsets", "plan", "sources.base"},
    "task_contract": {"errors", "kafka.protocols", "limits", "offsets", "sources.base"},
    "split_progress": {"checksum", "offsets", "task_contract"},
    "task": {"errors", "failpoints", "kafka.protocols", "limits", "offsets", "split_progress", "task_contract"},
    "verdict": {"errors", "interruption", "offsets", "plan", "task_contract"},
    "driver_contract": {"audit", "interruption", "offsets", "plan", "task_contract", "verdict"},
    "acceptance": {"audit", "audited_source", "errors", "offsets", "pins"},
    "control": {"errors", "kafka.protocols", "names", "offsets"},
    "driver": {
        "acceptance",
        "audited_source",
        "control",
        "driver_contract",
        "errors",
        "failpoints",
        "interruption",
        "kafka.protocols",
        "limits",
        "names",
        "offsets",
        "pins",
        "plan",
        "report",
        "sources.base",
        "task_contract",
        "verdict",
    },
    "broker": {"errors", "java", "paths"},
    "spec": {"errors"},
    "site": {"errors", "spec"},
    "sniff": {"errors"},
}
CORE = [part for part in MAY_IMPORT if part not in ("broker", "spec", "site", "java", "host_lock", "paths", "sniff")]

# Libraries that only one part of the house knows.
ONLY_IN = {
    "pyspark": {"spark"},
    "py4j": {"spark"},
    "pyarrow": {"spark", "sniff"},  # footers, and zstd
    "pandas": {"spark"},
    "typer": {"cli"},
    "rich": {"cli"},
    "click": {"cli"},
    "pydantic": {"spec"},
    "pydantic_core": {"spec"},
    "tomli": {"spec"},
    "lz4": {"sources"},
    "zstandard": {"sources"},
    "sqlglot": {"spec"},
    "confluent_kafka": {"kafka", "broker"},  # the broker is asked whether it answers
    "kafka": {"kafka"},
}


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and dotted name of everything a module imports, wherever in it, for type checkers alone or not."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"


def ours(name: str) -> str | None:
    """Return the part, or part.module, of a dotted name under eosingest."""
    head, *rest = name.split(".")
    if head != "eosingest" or not rest:
        return None
    folder = PACKAGE / rest[0]
    module = len(rest) > 1 and (folder / f"{rest[1]}.py").exists()
    return f"{rest[0]}.{rest[1]}" if module else rest[0]


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_there_is_something_to_read() -> None:
    assert len(MODULES) > 40
    names = {part_of(path) for path in MODULES}
    assert set(MAY_IMPORT) <= names, "a rule about a part that is gone"


def test_every_part_has_a_rule() -> None:
    on_top = {
        "__init__",
        "__main__",
        "cli",
        "connection",
        "executor_python",
        "further_checks",
        "look",
        "peek",
        "prepare",
        "preview",
        "run",
        "settings",
        "spark",
        "spark_submit",
        "verify",
    }
    assert {part_of(path) for path in MODULES} - on_top == set(MAY_IMPORT)


@pytest.mark.parametrize("path", [path for path in MODULES if part_of(path) in MAY_IMPORT], ids=shown)
def test_imports_go_one_way(path: Path) -> None:
    part = part_of(path)
    wrong = []
    for line, name in imports(path):
        wanted = ours(name)
        if wanted and not {wanted, wanted.split(".")[0]} & {part, *MAY_IMPORT[part]}:
            wrong.append(f"{shown(path)}:{line}: {name}")
    assert wrong == []


def test_the_rules_have_no_circle() -> None:
    left = {part: {name.split(".")[0] for name in allowed} for part, allowed in MAY_IMPORT.items()}
    while left:
        free = [part for part, allowed in left.items() if not allowed & set(left)]
        assert free, f"a circle among {sorted(left)}"
        for part in free:
            del left[part]


def test_what_lies_on_top_is_imported_by_nothing_below() -> None:
    verbs = {"connection", "look", "peek", "prepare", "preview", "run", "settings", "verify"}
    may = {
        "cli": {"cli", "__main__", "spark_submit"},
        "run": {"cli"},
        "verify": {"cli"},
        "look": {"cli"},
        "further_checks": {"cli"},
        "peek": {"cli"},
        "prepare": {"cli"},
        "preview": {"cli"},
        "connection": verbs,
        "settings": verbs,
        "executor_python": {"cli"},
        "spark": {"spark", "executor_python", "prepare", "preview", "run", "spark_submit", "verify"},
    }
    wrong = [
        f"{shown(path)}:{line}: {name}"
        for path in MODULES
        for line, name in imports(path)
        for wanted in [ours(name)]
        if wanted and part_of(path) not in may.get(wanted.split(".")[0], {part_of(path)})
    ]
    assert wrong == []


@pytest.mark.parametrize("path", MODULES, ids=shown)
def test_libraries_stay_in_their_part(path: Path) -> None:
    wrong = []
    for line, name in imports(path):
        library = name.split(".")[0]
        if part_of(path) not in ONLY_IN.get(library, {part_of(path)}):
            wrong.append(f"{shown(path)}:{line}: {name}")
    assert wrong == []


def loaded_by(statement: str) -> set[str]:
    """Return the top-level names of all modules that are there after a statement in a new Python."""
    code = f"import sys\n{statement}\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "statement",
    [
        "import eosingest.task, eosingest.driver",
        "import " + ", ".join(f"eosingest.{part}" for part in CORE),
        "import eosingest.kafka.librdkafka, eosingest.kafka.kafka_python, eosingest.sources.files",
    ],
    ids=["task and driver", "the core", "clients and files"],
)
def test_the_core_loads_neither_spark_nor_the_command_line_nor_the_spec(statement: str) -> None:
    heavy = {"pyspark", "py4j", "pandas", "pyarrow", "typer", "click", "rich", "pydantic", "tomli"}
    assert loaded_by(statement) & heavy == set()


def test_task_and_driver_see_kafka_through_the_protocols_only() -> None:
    assert loaded_by("import eosingest.task, eosingest.driver") & {"kafka", "confluent_kafka"} == set()


def test_the_command_line_starts_without_heavy_libraries() -> None:
    """`--help` and `--version` answer at once: what is heavy is imported where it is used."""
    assert loaded_by("import eosingest.cli.main") & {"pyspark", "py4j", "pandas", "pyarrow", "confluent_kafka"} == set()


@pytest.mark.parametrize("path", MODULES, ids=shown)
def test_every_module_opens_with_a_docstring(path: Path) -> None:
    text = ast.get_docstring(ast.parse(path.read_text()))
    assert text
    assert len(text.split()) >= 4


@pytest.mark.parametrize("path", MODULES, ids=shown)
def test_functions_and_modules_stay_short(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= MAX_MODULE_LINES
    long = [
        f"{shown(path)}:{node.lineno}: {node.name}, {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > MAX_FUNCTION_LINES
    ]
    assert long == []
