"""The house's plan, held by reading the source: who may import whom, and how long things may get."""

from __future__ import annotations

import ast
import itertools
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "eosingest"
MODULES = sorted(PACKAGE.rglob("*.py"))
MAX_FUNCTION_LINES = 70
MAX_CLASS_LINES = 250
MAX_MODULE_LINES = 400

# Which of ours each room may import beside itself. What is written as room.module is that module alone.
ROOMS: dict[str, set[str]] = {
    "errors": set(),
    "host": {"errors"},
    "kafka": {"errors", "host.interruption", "host.interruptible"},
    "records": {"errors", "kafka.ports"},
    "report": {"errors"},
    "protocol": {"errors", "host.failpoints", "host.interruption", "kafka.ports", "records", "report"},
    "sources": {"errors", "host.interruption", "host.interruptible", "protocol.source", "report.wording"},
    # What a compressed file begins with, what a run refuses in JSON, and the names that Spark gives columns are known once.
    "sniff": {
        "errors",
        "sources.files.bytes",
        "sources.files.formats.csv_header",
        "sources.files.formats.json_names",
    },
    "broker": {"errors", "host"},
    "spec": {"errors", "records.encoding", "sources.registry"},
    "spark": {"errors", "host", "kafka", "protocol", "records", "report", "spec"},
    "audit": {"errors", "host.interruptible", "kafka", "protocol", "records", "report", "spark"},
    "app": {
        "audit",
        "broker",
        "errors",
        "host",
        "kafka",
        "protocol",
        "records",
        "report",
        "sniff",
        "sources.registry",
        "spark",
        "spec",
    },
    "cli": {"app", "broker", "errors", "host", "report", "sniff", "spec"},
    # The Python API lies beside the command line: it asks app/, in a process of its own, which ends its JVMs before it ends.
    "api": {"app", "errors", "host", "report", "spec", "spark.session"},
    "spark_submit": {"cli", "host", "spark.spark_submit_signals"},
    "__main__": {"cli", "host"},
    # The names of the Python API, imported when they are first used. Whatever is in the package imports this module, too.
    "__init__": {"api", "errors", "report", "spec"},
}

# Modules whose rule is narrower than that of their room: the core, and what is pure. Of their own room they may import
# what is named here, and nothing else.
MODULES_MAY: dict[str, set[str]] = {
    "protocol.transactional_ids": set(),
    "protocol.source": {"errors", "report.wording"},
    "protocol.offsets": {"errors", "kafka.ports", "protocol.source", "records.checksum"},
    "protocol.plan": {"errors", "protocol.offsets", "protocol.source", "report.wording"},
    "protocol.pins": {"protocol.source", "errors", "protocol.offsets", "records.checksum"},
    "protocol.audited_source": {"protocol.offsets", "protocol.plan", "protocol.source", "records.checksum"},
    "protocol.task_contract": {
        "protocol.plan",
        "errors",
        "kafka.ports",
        "protocol.offsets",
        "protocol.source",
        "records.limits",
        "report.wording",
    },
    "protocol.dead_letters": {
        "kafka.ports",
        "protocol.offsets",
        "protocol.plan",
        "protocol.task_contract",
        "records.checksum",
        "records.limits",
    },
    "protocol.row_rejection": {
        "kafka.ports",
        "protocol.dead_letters",
        "protocol.split_progress",
        "protocol.task_contract",
        "records.limits",
    },
    "protocol.split_progress": {
        "protocol.dead_letters",
        "protocol.source",
        "protocol.plan",
        "protocol.offsets",
        "protocol.task_contract",
        "records.checksum",
    },
    "protocol.split_sequence": {
        "errors",
        "protocol.offsets",
        "protocol.plan",
        "protocol.split_progress",
        "protocol.task_contract",
        "report.wording",
    },
    "protocol.ownership": {
        "errors",
        "kafka.ports",
        "protocol.offsets",
        "protocol.plan",
        "protocol.task_contract",
    },
    "protocol.transaction": {"host.failpoints", "kafka.ports", "protocol.task_contract"},
    "protocol.retry_policy": {"errors", "kafka.ports", "protocol.permission_hints"},
    "protocol.permission_hints": set(),
    "protocol.rate_limit": set(),
    "protocol.single_transaction": {
        "errors",
        "protocol.offsets",
        "protocol.pins",
        "protocol.plan",
        "protocol.task_contract",
    },
    "protocol.partition_affinity": {"kafka.ports", "protocol.source", "protocol.task_contract"},
    "protocol.task": {
        "errors",
        "host.failpoints",
        "kafka.ports",
        "protocol.partition_affinity",
        "protocol.dead_letters",
        "protocol.ownership",
        "protocol.rate_limit",
        "protocol.retry_policy",
        "protocol.split_progress",
        "protocol.split_sequence",
        "protocol.task_contract",
        "protocol.transaction",
        "protocol.row_rejection",
        "protocol.single_transaction",
        "records.runs",
    },
    "protocol.split_table": {"protocol.plan", "protocol.offsets", "protocol.source", "protocol.task_contract"},
    "protocol.run_progress": {"protocol.source", "protocol.offsets", "protocol.plan", "report"},
    "protocol.verdict": {
        "protocol.source",
        "errors",
        "host.interruption",
        "protocol.offsets",
        "protocol.plan",
        "protocol.task_contract",
        "report.wording",
    },
    "protocol.sink_topic": {
        "errors",
        "kafka.ports",
        "protocol.driver_contract",
        "protocol.offsets",
        "protocol.pins",
        "protocol.transactional_ids",
    },
    "protocol.driver_contract": {
        "protocol.source",
        "host.interruption",
        "protocol.offsets",
        "protocol.plan",
        "protocol.task_contract",
        "protocol.verdict",
        "records.checksum",
    },
    "protocol.accept_change": {
        "protocol.source",
        "errors",
        "protocol.audited_source",
        "protocol.offsets",
        "protocol.pins",
        "records.checksum",
    },
    "protocol.scope": {"errors", "protocol.offsets", "protocol.pins", "protocol.source"},
    "protocol.data_loss": {"errors", "protocol.offsets", "protocol.plan", "protocol.source"},
    "protocol.merge_offsets": {"protocol.offsets", "protocol.source", "records.checksum"},
    "protocol.job_lease": {
        "errors",
        "kafka.ports",
        "protocol.control_log",
        "protocol.driver_contract",
        "protocol.merge_offsets",
        "protocol.offsets",
        "protocol.pins",
        "protocol.sink_topic",
        "protocol.transactional_ids",
    },
    "protocol.takeover": {
        "host.failpoints",
        "protocol.driver_contract",
        "protocol.offsets",
        "protocol.job_lease",
        "protocol.pins",
        "protocol.transactional_ids",
        "report",
    },
    "protocol.control_log": {
        "errors",
        "kafka.ports",
        "protocol.offsets",
        "protocol.permission_hints",
        "protocol.transactional_ids",
    },
    "sources.base": {"protocol.source"},
    # Files: storage and bytes know nothing of the others, a format knows how files are listed, and the listing no format.
    "sources.files.storage": {"errors", "sources.files.storage"},
    "sources.files.bytes": {"errors", "sources.files.bytes"},
    "sources.files.listing": {
        "sources.files.bytes.codecs",
        "errors",
        "host.interruption",
        "host.interruptible",
        "protocol.source",
        "report.wording",
        "sources.files.listing",
        "sources.files.storage",
    },
    "sources.files.formats": {
        "errors",
        "sources.files.bytes",
        "sources.files.formats",
        "sources.files.listing",
        "sources.files.storage",
        "spec.ddl",
    },
    # How a kind is read: by Spark, and by tasks, which make batches of what they read.
    "sources.files.reading": {
        "errors",
        "host.ivy",
        "host.paths",
        "kafka.columns",
        "kafka.ports",
        "protocol.offsets",
        "protocol.plan",
        "protocol.source",
        "protocol.split_table",
        "protocol.task_contract",
        "records.checksum",
        "sources.files",
        "spark",
        "spec.ddl",
        "spec.expressions",
    },
    # What of a spec its kind says.
    "sources.files.stores": {"sources.files.storage.schemes", "sources.files.formats.whole", "spec.document"},
    "sources.files.table": {
        "sources.files.bytes.codecs",
        "sources.files.formats",
        "sources.files.storage.schemes",
        "sources.files.stores",
        "sources.registry",
        "spec.columns",
        "spec.ddl",
        "spec.document",
        "spec.references",
        "spec.tables",
        "spec.units",
        "spec.values",
    },
    "sources.postgres": {"errors", "protocol.source", "report.wording", "sources.base"},
    "sources.postgres.reading": {
        "errors",
        "protocol.offsets.record",
        "protocol.plan",
        "protocol.source",
        "sources.postgres",
        "spark",
    },
    "sources.postgres.table": {"spec.document", "spec.tables", "spec.values"},
    # A topic is asked for by clients of Kafka, as the sink is.
    "sources.topics": {"errors", "kafka", "protocol.source", "report.wording", "sources.base"},
    "sources.topics.reading": {
        "errors",
        "kafka",
        "protocol.offsets",
        "protocol.plan",
        "protocol.source",
        "sources.topics",
        "spark",
    },
    "sources.topics.table": {
        "sources.topics.columns",
        "sources.topics.times",
        "spec.columns",
        "spec.document",
        "spec.options",
        "spec.tables",
        "spec.values",
    },
    # What every Python worker of Spark loads is for the kinds to say.
    "spark.daemon": {"sources.registry", "spark"},
    "spark.probe": {"sources.registry"},
    "audit.receipts": {"kafka.ports", "protocol.offsets", "records.checksum"},
    "audit.await_stable": {"kafka.ports", "kafka.kafka_python", "protocol.offsets"},
    "audit.findings": {"audit.receipts", "errors", "kafka.ports"},
    "audit.classify": {"audit.receipts", "records.checksum"},
    "audit.co_writers": {"audit.receipts", "errors", "kafka.ports", "protocol.offsets", "records.checksum"},
}
# What is loaded in every process of a run, and must load no heavy library.
CORE = ("host", "kafka.ports", "protocol", "records", "report", "sources")
READING = (
    "sources.files.reading",
    "sources.postgres.reading",
    "sources.topics.reading",
)  # loaded where rows are asked for
TABLES = (  # loaded with the spec
    "sources.files.stores",
    "sources.files.table",
    "sources.postgres.table",
    "sources.topics.table",
)

# Libraries that only some rooms, or some of their modules, know.
AUDIT_BY_SPARK = ("audit.scan", "audit.session")
ONLY_IN = {
    "pyspark": {"spark", *READING, *AUDIT_BY_SPARK},
    "py4j": {"spark", *READING},
    "pyarrow": {"spark", "sniff", *READING, *AUDIT_BY_SPARK},  # footers, and zstd
    "pandas": set(),  # its import takes half a second, and nothing here needs it (spark/without_pandas.py)
    "typer": {"cli"},
    "rich": {"cli"},
    "click": {"cli"},
    "pydantic": {"spec", *TABLES},
    "pydantic_core": {"spec"},
    "tomli": {"spec"},
    "fastavro": {"records", "sources.files.reading"},
    "jsonschema_rs": {"records"},
    "boto3": {"sources.files.storage"},
    "botocore": {"sources.files.storage"},
    "psycopg": {"sources.postgres"},
    "adbc_driver_manager": {"sources.postgres"},
    "adbc_driver_postgresql": {"sources.postgres"},
    "lz4": {"sources", "sniff"},
    "zstandard": {"sources"},
    "sqlglot": {"spec"},
    "confluent_kafka": {"kafka", "broker"},  # the broker is asked whether it answers
    "kafka": {"kafka"},
}


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def dotted(path: Path) -> str:
    """Return the module's name under eosingest; a package goes by its folder."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


NAMES = {dotted(path) for path in MODULES}


def parents(name: str) -> set[str]:
    """Return a dotted name and everything that it lies in."""
    parts = name.split(".")
    return {".".join(parts[:end]) for end in range(1, len(parts) + 1)}


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and dotted name of everything a module imports, wherever in it, for type checkers alone or not."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"


def ours(name: str) -> str | None:
    """Return the module under eosingest that an import loads, None for what is not ours."""
    head, *rest = name.split(".")
    while rest and ".".join(rest) not in NAMES:
        rest.pop()
    return ".".join(rest) if head == "eosingest" and rest else None


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_there_is_something_to_read() -> None:
    assert len(MODULES) > 100
    assert {part_of(path) for path in MODULES} == set(ROOMS)
    assert set(MODULES_MAY) <= NAMES, "a rule about a module that is gone"


def forbidden_imports(path: Path) -> list[str]:
    """Return what a module imports from modules of ours that its rule does not name."""
    room = part_of(path)
    strict = parents(dotted(path)) & set(MODULES_MAY)
    may = MODULES_MAY[max(strict)] | strict if strict else {room, *ROOMS[room]}
    return [
        f"{shown(path)}:{line}: {name}"
        for line, name in imports(path)
        for wanted in [ours(name)]
        if wanted and not parents(wanted) & may
    ]


def test_imports_go_one_way() -> None:
    assert [wrong for path in MODULES for wrong in forbidden_imports(path)] == []


def circle_among(rules: dict[str, set[str]]) -> list[str]:
    """Return the parts that import each other in a circle, or need those that do."""
    left = dict(rules)
    while free := [part for part, allowed in left.items() if not allowed & (set(left) - {part})]:
        for part in free:
            del left[part]
    return sorted(left)


def test_the_rules_have_no_circle() -> None:
    assert circle_among({room: {name.split(".")[0] for name in allowed} for room, allowed in ROOMS.items()}) == []
    assert circle_among(MODULES_MAY) == []


def test_what_a_verb_is_made_of_is_put_together_in_app_alone() -> None:
    """Only app/ may know Spark and the spec and the protocol at once; a verb of cli/, or of api/, asks app/."""
    assert {room for room, allowed in ROOMS.items() if "audit" in allowed or "app" in allowed} == {"app", "cli", "api"}


def test_libraries_stay_in_their_part() -> None:
    wrong = [
        f"{shown(path)}:{line}: {name}"
        for path in MODULES
        for line, name in imports(path)
        if not parents(dotted(path)) & ONLY_IN.get(name.split(".")[0], {part_of(path)})
    ]
    assert wrong == []


def is_core(name: str) -> bool:
    return bool(parents(name) & set(CORE)) and not {*READING, *TABLES} & parents(name)


def loaded_by(statement: str) -> set[str]:
    """Return the top-level names of all modules that are there after a statement in a new Python."""
    code = f"import sys\n{statement}\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "statement",
    [
        "import eosingest.protocol.task, eosingest.protocol.driver",
        "import " + ", ".join(f"eosingest.{name}" for name in sorted(NAMES) if is_core(name)),
        "import eosingest.kafka.producer, eosingest.kafka.offsets_reader, eosingest.kafka.kafka_python\n"
        "import eosingest.sources.files.source",
    ],
    ids=["task and driver", "the core", "clients and files"],
)
def test_the_core_loads_neither_spark_nor_the_command_line_nor_the_spec(statement: str) -> None:
    heavy = {"pyspark", "py4j", "pandas", "pyarrow", "typer", "click", "rich", "pydantic", "tomli", "boto3", "botocore"}
    assert loaded_by(statement) & heavy == set()


def test_task_and_driver_see_kafka_through_the_protocols_only() -> None:
    assert (
        loaded_by("import eosingest.protocol.task, eosingest.protocol.driver") & {"kafka", "confluent_kafka"} == set()
    )


def test_the_command_line_starts_without_heavy_libraries() -> None:
    """`--help` and `--version` answer at once: what is heavy is imported where it is used."""
    assert loaded_by("import eosingest.cli.main") & {"pyspark", "py4j", "pandas", "pyarrow", "confluent_kafka"} == set()


def test_a_preview_loads_no_client_of_kafka_and_no_library_of_tasks() -> None:
    """A user waits for each of them, and for NumPy's and Arrow's users among our modules."""
    loaded = loaded_by(
        "import eosingest.cli.preview, eosingest.app.preview, eosingest.spark.preview, eosingest.sources.files.reading.scan"
    )
    assert loaded & {"kafka", "confluent_kafka", "pyarrow", "pandas"} == set()


def test_every_module_opens_with_a_docstring() -> None:
    texts = {shown(path): ast.get_docstring(tree_of(path)) or "" for path in MODULES}
    assert [path for path, text in texts.items() if len(text.split()) < 4] == []


def longer_than(path: Path, most: int, *kinds: type[ast.stmt]) -> list[str]:
    """Return the functions or classes of a module that have more lines."""
    return [
        f"{shown(path)}:{node.lineno}: {node.name}, {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and isinstance(node, kinds)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > most
    ]


def test_functions_classes_and_modules_stay_short() -> None:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    assert [shown(path) for path in MODULES if len(path.read_text().splitlines()) > MAX_MODULE_LINES] == []
    assert [found for path in MODULES for found in longer_than(path, MAX_FUNCTION_LINES, *functions)] == []
    assert [found for path in MODULES for found in longer_than(path, MAX_CLASS_LINES, ast.ClassDef)] == []


def test_the_tree_in_the_docs_names_every_module_once() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    tree = text.split("```\neosingest/\n")[1].split("```")[0]
    folders: list[str] = []
    named = []
    for line in tree.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2 - 1
        if depth > len(folders):  # the words of a line of several modules
            assert not line.split()[0].endswith(".py"), line
            continue
        names = list(itertools.takewhile(lambda word: word.endswith((".py", "/")), line.split()))
        if names and names[0].endswith("/"):
            folders = [*folders[:depth], names[0].rstrip("/")]
        named += ["/".join([*folders[:depth], name]) for name in names if name.endswith(".py")]
    made = {str(path.relative_to(PACKAGE)) for path in MODULES if path.name != "__init__.py"} | {"__init__.py"}
    assert sorted(named) == sorted(made)
