"""The words of the files kind stand in its folder alone: the rest speaks of items, in the words that a kind brings (`Wording`).

Read from the syntax: identifiers, and string literals that are no docstrings. mypy holds the rest: an item has no path.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[3] / "eosingest"
ROOMS = ("protocol", "spark", "audit", "report", "app", "cli", "records", "kafka")
MODULES = sorted(path for room in ROOMS for path in (PACKAGE / room).rglob("*.py"))

_IDENTIFIER = re.compile(r"(^|_)(files?|fingerprints?|mtime(_ms)?|splittable|path_of_item)(_|$)")
_LITERAL = re.compile(r"\b[Ff]iles?\b|\bmtime|\bmodification time|\bfingerprints?\b|\bsplittable\b|\bmin_age\b|`path`")
_OF_AN_ITEM = frozenset({"path", "length", "mtime_ms", "splittable"})

# Other files than those that are a source's items. `name` is one identifier or literal, or a pattern of such; `*` is any.
EXCEPTIONS: dict[str, dict[str, str]] = {
    "protocol/offsets/record.py": {
        "schema_files": "the name on the wire",
    },
    "protocol/pins.py": {"schema_files": "as the control record has it"},
    "protocol/planning.py": {"schema_files": "as the control record has it"},
    "protocol/sending.py": {"schema_files": "as the control record has it"},
    "spark/causes.py": {"*file:*": "how Hadoop spells a path in what Spark says"},
    "spark/jvm.py": {"spark.files": "a setting of Spark"},
    "spark/class_archive.py": {"*": "jar files, and the archive itself"},
    "spark/session.py": {"*[Ff]ile": "the archive of our own modules"},
    "spark/spark_defaults.py": {"*file": "spark-defaults.conf", "_FILE": "spark-defaults.conf"},
    "app/discover.py": {"*": "the data file of init --from"},
    "app/executor_python.py": {"*": "the files of installed distributions, and the archive that they go into"},
    "app/prepare.py": {"FILES": "the kind whose rehearsal trains Spark's class archive"},
    "app/warm.py": {"FILES": "the kind whose rehearsal loads and compiles a warm JVM's classes"},
    "spark/warm/key.py": {"*": "the state of jars, of our code and of configuration, by which a warm JVM is equal"},
    "spark/warm/clean.py": {"FileSystem": "Hadoop's class"},
    "app/inspect.py": {"file": "the spec's"},
    "app/preview.py": {"file": "the spec's"},
    "cli/check.py": {"*": "the spec's"},
    "cli/init.py": {"*": "the spec that is written, and the data file of --from"},
    "cli/options.py": {"*": "the spec's"},
    "cli/package.py": {"*": "the archive that is written"},
    "cli/peek.py": {"*": "the spec's"},
    "cli/render.py": {"file": "the place of a problem: the spec's"},
    "kafka/config.py": {"*files*": "of keys and certificates"},
    "kafka/tls.py": {"*": "of keys and certificates"},
    "*": {
        "__file__": "Python's",
        "File*Error": "Python's",
        "is_file": "pathlib's",
        "*log_file": "Spark's log",
        "SpecFile": "the spec's",
        "spec_file": "the spec's",
        "st_mtime": "the operating system's",
    },
}


def words_in(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Yield line, kind ("identifier" or "literal") and text of everything that has words in it."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        match node:
            case ast.Constant(value=str(text)) if id(node) not in docstrings:
                yield line, "literal", text
            case ast.Name(id=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                yield line, "identifier", name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield line, "identifier", name
            case ast.Attribute(value=ast.Name(id="item") | ast.Attribute(attr="item"), attr=name) if (
                name in _OF_AN_ITEM
            ):
                yield line, "identifier", f"path_of_item_{name}"
            case ast.Attribute(attr=name) | ast.alias(name=name):
                yield line, "identifier", name


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def is_of_files(kind: str, text: str) -> bool:
    return bool(_LITERAL.search(text) if kind == "literal" else _IDENTIFIER.search(snake(text.rpartition(".")[2])))


def excepted(module: str, text: str) -> bool:
    return any(
        fnmatch(module, where) and any(fnmatch(text, known) for known in names) for where, names in EXCEPTIONS.items()
    )


def found_in(path: Path) -> list[str]:
    module = str(path.relative_to(PACKAGE))
    return [
        f"{module}:{line}: {text!r}"
        for line, kind, text in words_in(ast.parse(path.read_text()))
        if is_of_files(kind, text) and not excepted(module, text)
    ]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_word_of_files_stands_outside_of_their_folder(path: Path) -> None:
    assert found_in(path) == []


def test_each_exception_is_needed() -> None:
    used = {
        (where, known)
        for path in MODULES
        for line, kind, text in words_in(ast.parse(path.read_text()))
        if is_of_files(kind, text)
        for where, names in EXCEPTIONS.items()
        if fnmatch(str(path.relative_to(PACKAGE)), where)
        for known in names
        if fnmatch(text, known)
    }
    assert {(where, known) for where, names in EXCEPTIONS.items() for known in names} - used == set()


@pytest.mark.parametrize(
    "text",
    [
        "from eosingest.sources.files.listing.source_file import SourceFile",
        "def _plan_file(): pass",
        "entry.item.path",
        "item.mtime_ms",
        "Snapshot(files=())",
        "fingerprints = {}",
        "print(f'{number} files left')",
        "hint = 'restore the file'",
        "{'file': name}",
        "hint = 'left alone by source.min_age'",
    ],
)
def test_the_words_are_found(text: str) -> None:
    assert any(is_of_files(kind, found) for _, kind, found in words_in(ast.parse(text))), text


def test_other_words_are_not() -> None:
    text = '"""Of files."""\nresourceProfile\nitem.name\nitem.size\nfromtimestamp\n"profile"\nspark.path\ntempfile'
    assert [found for _, kind, found in words_in(ast.parse(text)) if is_of_files(kind, found)] == []
