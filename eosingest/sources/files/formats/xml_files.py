"""Defines the format entry of XML: the elements of one name are the rows. Python reads it (reading/xml_scan.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from eosingest.sources.files.formats import encodings
from eosingest.sources.files.formats.entry import ANY_TEXT, BOOLEAN, XML_NAME, FileFormat, Refusals
from eosingest.sources.files.formats.xml import schema

_DEFAULTS = {"attributePrefix": "_", "valueTag": "_VALUE", "ignoreSurroundingSpaces": "true"}


def _refused(options: Mapping[str, str], has_schema: bool) -> Refusals:
    if "rowtag" not in options:
        yield "rowTag", 'is missing: the name of the elements that are the rows, as written, such as rowTag = "book"'
    for name in ("attributePrefix", "valueTag"):
        if not options.get(name.lower(), "x"):
            yield name, "must not be empty: attributes and elements of one name would be one column"
    if "encoding" in options:
        yield from encodings.refused_encoding(options, whole=True)


def _schema_problems(ddl: str, options: Mapping[str, str]) -> Iterator[str]:
    given = {**_DEFAULTS, **options}
    return schema.problems(ddl, given["attributePrefix"], given["valueTag"])


XML = FileFormat(
    name="xml",
    schema_note="not given, and there must be one",
    options={
        "rowTag": XML_NAME,
        "attributePrefix": ANY_TEXT,
        "valueTag": ANY_TEXT,
        "nullValue": ANY_TEXT,
        "ignoreSurroundingSpaces": BOOLEAN,
        "encoding": ANY_TEXT,
    },
    defaults=_DEFAULTS,
    is_text=True,
    is_whole=lambda options: True,
    needs_schema=True,
    drops_unknown=True,
    schema_problems=_schema_problems,
    refused=_refused,
)
