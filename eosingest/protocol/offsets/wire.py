"""Encodes the records of the offsets topic as JSON, and checks each record when it is read.

A value is an object with the format version `v` and exactly the fields of its kind of record. A record of another version, or
one that is damaged, is refused and never skipped: it holds progress, or the claim of a run. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from typing import Annotated, Any, ClassVar, Final, NamedTuple, Self, TypeAlias

VERSION: Final = 1  # of all records; it grows with every change of a field
_BEGIN: Final = f'{{"v":{VERSION},'.encode()
Checksum: TypeAlias = Annotated[int, "16 hex digits"]  # some JSON readers round numbers above 2^53
_KEPT: Final = "committed records are kept, nothing was sent twice"


class RecordError(ValueError):
    """A record that differs from the form that eosingest writes. Its text names the fault, not the record's place."""

    code: ClassVar[str] = "damaged-record"
    hint = (
        f"{_KEPT}; eosingest topic peek TOPIC --last shows the newest records of the topic: find the writer of this one, and"
        " restore the topic from a backup, or take a new job name, under which everything is sent again"
    )


class VersionError(RecordError):
    """A record of another format version than ours: its fields may mean something else."""

    code = "newer-format"

    def __init__(self, version: int) -> None:
        super().__init__(f"its format version is {version}, and this eosingest reads only version {VERSION}")
        what = "upgrade eosingest to" if version > VERSION else "finish the job with"
        self.hint = f"{_KEPT}; {what} the release that wrote the record, and repeat the command"


def encode(value: object) -> bytes:
    """Return the wire form of a key or a value."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def load(value: bytes) -> dict[str, Any]:
    """Return the fields of a value without its version. Raises RecordError, or VersionError for another version."""
    try:
        loaded = json.loads(value.decode())
    except (ValueError, RecursionError):
        raise RecordError("its value is not JSON") from None
    if type(loaded) is not dict:
        raise RecordError("its value is not a JSON object")
    version = loaded.pop("v", None)
    if type(version) is not int:
        raise RecordError("its value has no format version (v)")
    if version != VERSION:
        raise VersionError(version)
    return loaded


def check_version(value: bytes) -> None:
    """Raise as `load` does, without parsing a value that begins with our version."""
    if not value.startswith(_BEGIN):
        load(value)


class Form(NamedTuple):
    """The JSON form of a field: its name for errors (`what`), its types, a check, and how it is read and written."""

    what: str
    types: tuple[type, ...]
    fits: Callable[[Any], object] | None = None
    read: Callable[[Any], Any] | None = None
    write: Callable[[Any], Any] | None = None


def _is_texts(value: dict[str, Any]) -> bool:
    return all(type(text) is str for text in value.values())


def _is_numbers(value: list[Any]) -> bool:
    return all(type(number) is int and number >= 0 for number in value)


FORMS: Final[dict[str, Form]] = {  # by annotation
    "int": Form("a number", (int,), (0).__le__),
    "bool": Form("true or false", (bool,)),
    "str": Form("a text", (str,)),
    "Checksum": Form(
        "16 hex digits", (str,), re.compile("[0-9a-f]{16}").fullmatch, partial(int, base=16), "{:016x}".format
    ),
    "tuple[int, ...]": Form("a list of numbers", (list,), _is_numbers, tuple, list),
    "Mapping[str, str]": Form("an object of texts", (dict,), _is_texts),
    "Mapping[str, Json]": Form("an object", (dict,)),
}


class Part:
    """A dataclass with a wire form: a JSON object of exactly its fields, each as its annotation says.

    Fields in `in_key` are in the key of the record.
    """

    in_key: ClassVar[tuple[str, ...]] = ()
    _forms: ClassVar[Mapping[str, Form]]

    @classmethod
    def forms(cls) -> Mapping[str, Form]:
        """Return the form of each field."""
        if "_forms" not in cls.__dict__:
            names = (field for field in fields(cls) if field.name not in cls.in_key)  # type: ignore[arg-type]
            cls._forms = {field.name: _form(str(field.type)) for field in names}
        return cls._forms

    def __init_subclass__(cls) -> None:
        FORMS[cls.__name__] = Form("an object", (dict,), None, cls.from_json, cls.to_json)

    def to_json(self) -> dict[str, Any] | None:
        """Return the wire form."""
        return {
            name: getattr(self, name) if form.write is None else form.write(getattr(self, name))
            for name, form in self.forms().items()
        }

    @classmethod
    def from_json(cls, loaded: Any, **key: Any) -> Self:
        """Read what `to_json` wrote; `key` are the fields of the key. Raises RecordError for anything else."""
        forms = cls.forms()
        if loaded.keys() != forms.keys():
            missing, unknown = sorted(forms.keys() - loaded.keys()), sorted(loaded.keys() - forms.keys())
            raise RecordError(f"fields are missing ({', '.join(missing)}) or unknown ({', '.join(unknown):.100})")
        for name, (what, types, fits, read, _) in forms.items():
            value = loaded[name]
            if type(value) not in types or (fits is not None and not fits(value)):
                raise RecordError(f"{name} is {value!r:.40}, not {what}")
            try:
                key[name] = value if read is None else read(value)
            except RecordError as error:
                raise RecordError(f"{name}: {error}") from None
        return cls(**key)


class Record(Part):
    """The value of a record of the offsets topic."""

    def encode(self) -> bytes:
        """Return the wire form of the value."""
        return encode({"v": VERSION, **(self.to_json() or {})})

    @classmethod
    def decode(cls, value: bytes, **key: Any) -> Self:
        """Read what `encode` wrote; `key` are the fields of the key. Raises RecordError for anything else."""
        return cls.from_json(load(value), **key)


def _form(annotation: str) -> Form:
    """Return the form of a field."""
    name, _, or_none = annotation.partition(" | ")
    what, types, fits, read, write = FORMS[name]
    if not or_none:
        return FORMS[name]
    return Form(
        f"{what} or null",
        (*types, type(None)),
        fits and (lambda value: value is None or fits(value)),
        read and (lambda value: None if value is None else read(value)),
        write and (lambda value: None if value is None else write(value)),
    )
