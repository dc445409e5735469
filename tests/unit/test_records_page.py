"""docs/records.md: what it shows loads, and its tables are those of the code: keys, types, codes."""

from __future__ import annotations

import re
from pathlib import Path

from eosingest.spark import avro_fit
from eosingest.spec import Spec, digest_parts, load
from eosingest.spec.encodings import Avro, Encoded, JsonSchema, Registry

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "records.md").read_text(encoding="utf-8")
SPEC = """\
name = "orders"
[source]
format = "json"
path = "data/*.jsonl"
schema = "id BIGINT, user STRING"
[sink]
bootstrap_servers = "b:9092"
topic = "orders"
"""
# The modules that ask the registry, and read schemas.
_CODES_OF = ("kafka/schema_registry.py", "app/encodings.py", "spec/encodings.py", "records/json_schema.py")


def table_under(heading: str) -> list[list[str]]:
    """Return the cells of the rows of the table that begins with this row."""
    (found,) = tables_under(heading)
    return found


def tables_under(heading: str) -> list[list[list[str]]]:
    """Return those of all tables that begin with this row."""
    _, *after = PAGE.split(f"\n{heading}\n|---|---|\n")
    tables = [text.partition("\n\n")[0].splitlines() for text in after]
    return [[[cell.strip() for cell in row.strip("|").split("|")] for row in table] for table in tables]


def test_what_it_shows_loads(tmp_path: Path) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 4
    default, avro, json_schema, on_error = (
        _loaded(tmp_path, block + SPEC if block.startswith("on_error") else SPEC + block) for block in blocks
    )
    assert digest_parts(default) == digest_parts(_loaded(tmp_path, SPEC))  # the row as JSON
    assert isinstance(avro.record.value, Encoded) and avro.record.value.avro
    assert isinstance(json_schema.record.value, Encoded) and json_schema.record.value.json_schema
    assert on_error.on_error != "fail"


def _loaded(folder: Path, text: str) -> Spec:
    (folder / "orders.toml").write_text(text)
    return load(folder / "orders.toml")


def test_its_keys_are_those_of_the_spec() -> None:
    shown, of_json = ({cells[0].strip("`"): cells[1] for cells in table} for table in tables_under("| key | |"))
    assert list(shown) == [field.alias or name for name, field in Avro.model_fields.items()]
    assert set(re.findall(r"`(\w+)`", shown["registry"])) == set(Registry.model_fields)
    assert {field.alias or name for name, field in JsonSchema.model_fields.items()} == {*shown, *of_json} - {"columns"}


def test_its_types_are_those_that_are_written() -> None:
    """Breaks when a type is written that the page does not have, or the other way round."""
    shown = {
        name
        for cells in table_under("| the schema has | the column may be |")
        for name in re.findall(r"[\w-]+", cells[0])
    }
    written = {logical or name for name, logical in avro_fit._SIMPLE} | {"decimal", "array", "map", "record", "union"}
    prose = {"a", "and", "of", "one", "these", "the", "logical", "type", "null"}
    assert shown - prose == written


def test_its_codes_are_those_of_the_code() -> None:
    shown = {
        code for cells in table_under("| what is wrong | exit, code |") for code in re.findall(r"`([\w-]+)`", cells[1])
    }
    text = "".join((ROOT / "eosingest" / name).read_text(encoding="utf-8") for name in _CODES_OF)
    assert shown == set(re.findall(r'code="([\w-]+)"', text))


def test_its_codes_of_bad_rows_and_headers_are_those_of_the_code() -> None:
    """Breaks when a row may become a dead letter for a reason that the page does not have, or a header is not told."""
    shown = {cells[0].strip("`") for cells in table_under("| code | the row |")}
    limits = (ROOT / "eosingest" / "records" / "limits.py").read_text(encoding="utf-8")
    assert shown == set(re.findall(r'BadRow\(\w+, "([\w-]+)"', limits))
    (listed,) = re.findall(r"Headers: (.*?), how many bytes", PAGE, re.DOTALL)
    headers = {name.removeprefix("eosingest") for name in re.findall(r"`([\w.]+)`", listed)}
    text = (ROOT / "eosingest" / "protocol" / "dead_letters.py").read_text(encoding="utf-8")
    made = re.findall(r'^        "(\w+)": ', text, re.MULTILINE) + re.findall(r'"eosingest\.(truncated)"', text)
    assert headers == {f".{name}" for name in made}
