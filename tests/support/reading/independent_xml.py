"""What an XML file says, by lxml (libxml2): the expectation of the table's XML files, for independent.py.

The rules of docs/reading.md are told here anew, over libxml2's tree, and the types by Python's own constructors.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import lxml.etree
import numpy as np

_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_WHITE = " \t\r\n"
_NIL = "{http://www.w3.org/2001/XMLSchema-instance}nil"
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)?", re.ASCII)


class Misfit(ValueError):
    """The file does not fit the columns."""


def xml_rows(data: bytes, columns: Mapping[str, Any], options: Mapping[str, str]) -> list[Any]:
    """Return the rows. Raises ValueError for a file that must be refused."""
    parser = lxml.etree.XMLParser(
        resolve_entities=False, no_network=True, huge_tree=True, encoding=options.get("encoding"), recover=False
    )
    try:
        root = lxml.etree.fromstring(data, parser)
    except lxml.etree.XMLSyntaxError as error:
        raise Misfit(str(error)) from error
    document = root.getroottree().docinfo
    if document.internalDTD is not None and (document.system_url or list(document.internalDTD.iterentities())):
        raise Misfit("a DTD")
    return [_row(element, columns, options) for element in _outermost(root, options["rowTag"])]


def _name(element: Any) -> str:
    local = lxml.etree.QName(element).localname
    return f"{element.prefix}:{local}" if element.prefix else local


def _elements(element: Any) -> list[Any]:
    return [child for child in element if isinstance(child.tag, str)]


def _outermost(element: Any, tag: str) -> Iterator[Any]:
    if _name(element) == tag:
        yield element
        return
    for child in _elements(element):
        yield from _outermost(child, tag)


def _attributes(element: Any) -> dict[str, str]:
    prefixes = {uri: prefix for prefix, uri in element.nsmap.items() if prefix} | {
        "http://www.w3.org/XML/1998/namespace": "xml"
    }
    found = {}
    for key, value in element.attrib.items():
        name = lxml.etree.QName(key)
        found[f"{prefixes[name.namespace]}:{name.localname}" if name.namespace else name.localname] = value
    return found


def _texts(element: Any) -> list[str]:
    """Return the text directly in an element, in pieces as elements cut it; comments and instructions cut nothing."""
    found = [element.text or ""]
    for child in element:
        if isinstance(child.tag, str):
            found.append("")
        elif not isinstance(child, lxml.etree._Comment | lxml.etree._ProcessingInstruction):
            raise Misfit("an entity")
        found[-1] += child.tail or ""
    return found


def _row(element: Any, columns: Mapping[str, Any], options: Mapping[str, str]) -> dict[str, Any]:
    found = _struct(element, columns, options)
    _no_rows_inside(element, columns, options["rowTag"])
    return found


def _no_rows_inside(element: Any, kinds: Any, tag: str) -> None:
    """A row in a row is an error unless a column has its name."""
    for child in _elements(element):
        inner = kinds.get(_name(child)) if isinstance(kinds, dict) else None
        if inner is None and _name(child) == tag:
            raise Misfit("a row in a row")
        _no_rows_inside(child, inner[0] if isinstance(inner, list) else inner, tag)


def _struct(element: Any, kinds: Mapping[str, Any], options: Mapping[str, str]) -> dict[str, Any]:
    prefix, value_tag = options.get("attributePrefix", "_"), options.get("valueTag", "_VALUE")
    attributes, children = _attributes(element), _elements(element)
    texts = _texts(element)
    spoken = [text for text in texts if text.strip(_WHITE)]
    if _is_nil(element) and (children or spoken):
        raise Misfit("nil and not empty")
    if spoken and (value_tag not in kinds or len(spoken) > 1):
        raise Misfit("text beside elements")
    found: dict[str, Any] = {}
    for name, kind in kinds.items():
        same = [child for child in children if _name(child) == name]
        if name == value_tag or name.startswith(prefix):
            if same:
                raise Misfit("an element by an attribute's name")
            if name == value_tag:
                text = "".join(texts)
                keeps = options.get("ignoreSurroundingSpaces") == "false" and not children
                found[name] = _value(text, kind, options) if spoken or (keeps and text) else None
            else:
                text = attributes.get(name.removeprefix(prefix))
                found[name] = None if text is None else _value(text, kind, options)
        elif isinstance(kind, list):
            found[name] = [_child(child, kind[0], options) for child in same] or None
        elif len(same) > 1:
            raise Misfit("more than one")
        else:
            found[name] = _child(same[0], kind, options) if same else None
    return found


def _is_nil(element: Any) -> bool:
    said = element.attrib.get(_NIL, "false").strip(_WHITE)
    if said not in ("true", "false", "0", "1"):
        raise Misfit(said)
    return said in ("true", "1")


def _child(element: Any, kind: Any, options: Mapping[str, str]) -> Any:
    if isinstance(kind, dict):
        found = _struct(element, kind, options)
        prefix = options.get("attributePrefix", "_")
        said = {name.removeprefix(prefix) for name in kind if name.startswith(prefix)} & _attributes(element).keys()
        return None if _is_nil(element) and not said else found
    if _elements(element):
        raise Misfit("an element in a value")
    text = "".join(_texts(element))
    if _is_nil(element):
        if text.strip(_WHITE):
            raise Misfit("nil and not empty")
        return None
    return _value(text, kind, options)


def _value(text: str, kind: str, options: Mapping[str, str]) -> Any:
    if kind != "STRING" or options.get("ignoreSurroundingSpaces") != "false":
        text = text.strip(_WHITE)
    if text == options.get("nullValue"):
        return None
    if kind == "STRING":
        return text
    return None if text == "" else typed(text, kind)


def typed(text: str, kind: str) -> Any:
    """Return a value as a record has it in JSON, or raise ValueError."""
    if kind in _BITS:
        return _whole(text, _BITS[kind])
    if kind == "BOOLEAN":
        return (
            {"true": True, "1": True, "false": False, "0": False}[text]
            if text in ["true", "1", "false", "0"]
            else _no()
        )
    if kind.startswith("DECIMAL"):
        return _decimal(text, *map(int, re.findall(r"\d+", kind)))
    if kind in ("FLOAT", "DOUBLE"):
        return _floating(text, kind)
    if kind == "DATE":
        return datetime.date.fromisoformat(text if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII) else "").isoformat()
    return _moment(text, kind)


def _no() -> Any:
    raise Misfit("no value")


def _whole(text: str, bits: int) -> int:
    value = int(text) if re.fullmatch(r"[+-]?\d+", text, re.ASCII) else _no()
    return value if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) else int(_no())


def _decimal(text: str, precision: int, scale: int) -> Decimal:
    value = Decimal(text) if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)", text, re.ASCII) else _no()
    exact = value * 10**scale
    return value if exact == int(exact) and abs(exact) < 10**precision else Decimal(_no())


def _floating(text: str, kind: str) -> Any:
    if text in ("INF", "+INF", "-INF", "NaN"):
        return {"INF": "Infinity", "+INF": "Infinity", "-INF": "-Infinity", "NaN": "NaN"}[text]
    value = float(text) if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text, re.ASCII) else _no()
    if kind == "FLOAT" and abs(value) < 3.5e38:
        value = _of_32_bits(text, value)
    elif kind == "FLOAT":
        raise Misfit("beyond")
    if value in (float("inf"), float("-inf")) or (value == 0 and re.search("[1-9]", re.split("[eE]", text)[0])):
        raise Misfit("beyond")
    return value


def _of_32_bits(text: str, value: float) -> float:
    """Return the nearest float of 32 bits to the text itself, as the shortest text that means it."""
    with np.errstate(over="ignore"):
        near = np.float32(value)
    candidates = [near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))]
    exact = Fraction(text) if value else Fraction(0)
    finite = [each for each in candidates if np.isfinite(each)]
    best = min(finite, key=lambda each: abs(Fraction(float(each)) - exact))
    return float(str(best if np.isfinite(near) else near))


def _moment(text: str, kind: str) -> str:
    found = _TIME.fullmatch(text)
    if found is None or (found[4] is None) != (kind == "TIMESTAMP_NTZ"):
        raise Misfit("no time")
    fraction = (found[3] or ".0").rstrip("0")
    if len(fraction) > 7:
        raise Misfit("too fine")
    zone = {"Z": "+00:00", None: ""}.get(found[4], found[4])
    if zone and (int(zone[1:3]) * 60 + int(zone[4:]) > 14 * 60 or int(zone[4:]) > 59):
        raise Misfit("no zone")
    try:
        moment = datetime.datetime.fromisoformat(f"{found[1]}T{found[2]}.{fraction[1:].ljust(6, '0')}{zone}")
        if moment.tzinfo is not None:
            moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
    except OverflowError as error:
        raise Misfit("beyond") from error
    return moment.isoformat(timespec="microseconds") + ("Z" if zone else "")
