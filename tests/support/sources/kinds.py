"""The kinds of sources that the conformance suite runs on: files, by format and by who reads them, and one of the tests' own.

Rows are told here by other readers than a run's: lines by Hadoop's rule told anew, Parquet and ORC by pyarrow, Avro by avro
and which of their parts lies in which split by what parquet-mr, ORC and Avro for Java document (a row group by its middle, a
stripe by its first byte, a block by the marker before it), from the places in the footers, or in the file.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import fastavro
import lxml.etree
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import pytest

from eosingest.protocol.source import Split
from eosingest.sources.registry import Kind
from tests.support import ledger
from tests.support.builders import place
from tests.support.reading.independent_avro import avro_rows
from tests.support.sources.buckets import InBucket
from tests.support.sources.by_registry import ByRegistry
from tests.support.sources.in_avro import InAvro
from tests.support.sources.in_hdfs import InHdfs
from tests.support.sources.in_json_schema import InJsonSchema
from tests.support.sources.in_one_transaction import InOneTransaction
from tests.support.sources.in_store import InStore
from tests.support.sources.subject import SPLIT_SIZE, Plain
from tests.support.sources.tables import Incremental, Query, Table, TableByText, TableByTwo
from tests.support.sources.topics import Topic, TopicBySql
from tests.support.sources.with_dead_letters import (
    BeforeTheEpoch,
    NoSuchPartition,
    TooLong,
    TooLongToKeep,
    Unfit,
    Unparsable,
    WithDeadLetters,
    WithoutKey,
)

_ITEM_ROWS = 60
_LINE_BYTES = 64  # of some lines: those begin exactly where splits do
_LATER_NS = 5_000_000_000
_PART_ROWS = 15  # of a row group, and of a stripe: no split of Parquet or ORC cuts one


class FileSubject(Plain):
    """Files of one format. A row is a text of fixed length, so that an edit changes no length, compressed or not."""

    needs_spark = True
    kind: Kind | None = None
    suffix = ""
    source = ""
    where = 'path = "data/*"'
    value = "v"
    around = 0  # bytes of a line that are not its row
    noticed_behind_listing = "file-changed"

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "data"
        self.folder.mkdir(exist_ok=True)

    # what every format does alike

    def create(self) -> None:
        for number in range(2):
            self._write_item(number)

    def grow(self) -> None:
        self._write_item(len(self._paths()))

    def spec(self) -> str:
        return f'[source]\n{self.where}\nsplit_size = {SPLIT_SIZE}\n{self.source}\n[record]\nvalue = "{self.value}"\n'

    def edit(self, row: bytes, *, unseen: bool) -> None:
        (path,) = [path for path in self._paths() if row in self._read(path)]
        before = path.stat()
        self._write(path, [row[:-3] + b"!!!" if found == row else found for found in self._read(path)])
        assert path.stat().st_size == before.st_size, "the edit is to keep the length"
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + (0 if unseen else _LATER_NS)))

    def touch(self, item: str) -> None:
        path = self._path(item)
        before = path.stat()
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + _LATER_NS))

    def remove(self, item: str) -> None:
        self._path(item).unlink()

    def items(self) -> list[str]:
        return [f"{self.folder.name}/{path.name}" for path in self._paths()]

    def rows(self) -> list[bytes]:
        return [row for path in self._paths() for row in self._read(path)]

    def rows_of(self, split: Split) -> list[bytes]:
        name, start = place(split)
        path = self._path(name)
        rows = self._read(path)
        starts = list(self._split_of_rows(path))
        assert len(starts) == len(rows)
        return [row for row, of in zip(rows, starts, strict=True) if of == start]

    def is_covered(self, splits: list[Split]) -> bool:
        item, reached = splits[0].item, 0
        for split in splits:
            if place(split) != (item, reached) or split.size <= 0:
                return False
            reached += split.size
        return reached == self._path(item).stat().st_size

    def _paths(self) -> list[Path]:
        return sorted(self.folder.iterdir())

    def _path(self, item: str) -> Path:
        return self.folder.parent / item

    def _write_item(self, number: int) -> None:
        """Write rows of several lengths; those of the second item make each line as long as splits divide by."""
        first = number * _ITEM_ROWS
        rows = [b"%05d-" % row + b"%x" % (row * 2654435761 % 2**64) * 4 for row in range(first, first + _ITEM_ROWS)]
        if number == 1:
            rows = [row.ljust(_LINE_BYTES - self.around, b"x") for row in rows]
        self._write(self.folder / f"part-{number:03}{self.suffix}", rows)

    # what differs

    def _write(self, path: Path, rows: list[bytes]) -> None:
        raise NotImplementedError

    def _read(self, path: Path) -> list[bytes]:
        raise NotImplementedError

    def _split_of_rows(self, path: Path) -> Iterator[int]:
        """Yield, row by row, where the split begins that it belongs to."""
        raise NotImplementedError


class Lines(FileSubject):
    """A row a line. A line that begins exactly at a cut belongs to the split before it: Hadoop's LineRecordReader."""

    def _split_of_rows(self, path: Path) -> Iterator[int]:
        at = 0
        for line in path.read_bytes().splitlines(keepends=True):
            yield (max(at, 1) - 1) // SPLIT_SIZE * SPLIT_SIZE
            at += len(line)


class Json(Lines):
    suffix = ".jsonl"
    source = 'format = "json"\nschema = "v STRING"'
    around = 10

    def _write(self, path: Path, rows: list[bytes]) -> None:
        path.write_bytes(b"".join(b'{"v": "%s"}\n' % row for row in rows))

    def _read(self, path: Path) -> list[bytes]:
        return [json.loads(line)["v"].encode() for line in path.read_bytes().splitlines()]


class Csv(Lines):
    """With a header in each file, which is in its first split."""

    suffix = ".csv"
    source = 'format = "csv"\nschema = "v STRING, w INT"\noptions = { header = true }'
    around = 3

    def _write(self, path: Path, rows: list[bytes]) -> None:
        path.write_bytes(b"v,w\n" + b"".join(b"%s,7\n" % row for row in rows))

    def _read(self, path: Path) -> list[bytes]:
        return [row["v"].encode() for row in csv.DictReader(io.StringIO(path.read_text()))]

    def _split_of_rows(self, path: Path) -> Iterator[int]:
        return itertools.islice(super()._split_of_rows(path), 1, None)


class Text(Lines):
    """Lines that go to Kafka as they are: the tasks read them, and no JVM does."""

    needs_spark = False
    suffix = ".txt"
    source = 'format = "text"'
    around = 1
    value = "value"

    def _write(self, path: Path, rows: list[bytes]) -> None:
        path.write_bytes(b"".join(row + b"\n" for row in rows))

    def _read(self, path: Path) -> list[bytes]:
        return path.read_bytes().splitlines()


class TextGz(Text):
    """The same in a file that is never cut. Stored and not deflated, so that an edit keeps the length."""

    suffix = ".txt.gz"

    def _write(self, path: Path, rows: list[bytes]) -> None:
        path.write_bytes(gzip.compress(b"".join(row + b"\n" for row in rows), compresslevel=0, mtime=0))

    def _read(self, path: Path) -> list[bytes]:
        return gzip.decompress(path.read_bytes()).splitlines()

    def _split_of_rows(self, path: Path) -> Iterator[int]:
        return (0 for _ in self._read(path))


class JsonDocument(Json):
    """An array over several lines; such a file is never cut."""

    suffix = ".json"
    source = 'format = "json"\nschema = "v STRING"\noptions = { multiLine = true }'

    def _write(self, path: Path, rows: list[bytes]) -> None:
        path.write_bytes(b"[\n" + b",\n".join(b'{"v":\n"%s"}' % row for row in rows) + b"\n]\n")

    def _read(self, path: Path) -> list[bytes]:
        return [each["v"].encode() for each in json.loads(path.read_bytes())]

    def _split_of_rows(self, path: Path) -> Iterator[int]:
        return (0 for _ in self._read(path))


class CsvOverLines(JsonDocument):
    """Each record in two lines, behind a header."""

    suffix = ".csv"
    source = 'format = "csv"\nschema = "w STRING, v STRING"\noptions = { header = true, multiLine = true }'

    def _write(self, path: Path, rows: list[bytes]) -> None:
        path.write_bytes(b"w,v\n" + b"".join(b'"\n",%s\n' % row for row in rows))

    def _read(self, path: Path) -> list[bytes]:
        return [row["v"].encode() for row in csv.DictReader(io.StringIO(path.read_text(), newline=""))]


class Xml(JsonDocument):
    """Elements in lines of their own, read in Python: columns that records are go straight to the producer."""

    needs_spark = False
    suffix = ".xml"
    source = 'format = "xml"\nschema = "_n INT, v STRING"\noptions = { rowTag = "row" }'

    def _write(self, path: Path, rows: list[bytes]) -> None:
        elements = (b'<row n="%d">\n<v>%s</v></row>\n' % (number, row) for number, row in enumerate(rows))
        path.write_bytes(b"<rows>\n" + b"".join(elements) + b"</rows>\n")

    def _read(self, path: Path) -> list[bytes]:
        return [row.findtext("v").encode() for row in lxml.etree.parse(path).getroot().iter("row")]


class XmlBySql(Xml):
    """The same through Spark SQL."""

    needs_spark = True
    value = "concat(v, '')"


class TextInBucket(InBucket, Text):
    """Read by the tasks, straight from the store."""


class TextGzInBucket(InBucket, TextGz):
    pass


class TextInBucketBySql(TextInBucket):
    """Lines that Python gives to Spark SQL."""

    needs_spark = True
    value = "concat(value, '')"


class XmlInBucket(InBucket, Xml):
    pass


class JsonInBucket(InBucket, Json):
    """Read by Spark, by Hadoop's client of S3."""


class Parquet(FileSubject):
    suffix = ".parquet"
    source = 'format = "parquet"'

    def _write(self, path: Path, rows: list[bytes]) -> None:
        table = pa.table({"v": pa.array([row.decode() for row in rows], pa.string())})
        pa.parquet.write_table(table, path, row_group_size=_PART_ROWS, use_dictionary=False, compression="none")

    def _read(self, path: Path) -> list[bytes]:
        return [value.encode() for value in pa.parquet.read_table(path)["v"].to_pylist()]

    def _split_of_rows(self, path: Path) -> Iterator[int]:
        footer = pa.parquet.read_metadata(path)
        for number in range(footer.num_row_groups):
            group = footer.row_group(number)
            column = group.column(0)
            middle = column.data_page_offset + column.total_compressed_size // 2
            yield from [middle // SPLIT_SIZE * SPLIT_SIZE] * group.num_rows


class ParquetInBucket(InBucket, Parquet):
    pass


class TextInHdfs(InHdfs, Text):
    """Read by the tasks, over WebHDFS."""


class JsonInHdfs(InHdfs, Json):
    """Read by Spark, by Hadoop's client of HDFS."""


class Orc(FileSubject):
    suffix = ".orc"
    source = 'format = "orc"'

    def _write(self, path: Path, rows: list[bytes]) -> None:
        table = pa.table({"v": pa.array([row.decode() for row in rows], pa.string())})
        options = {"compression": "uncompressed", "dictionary_key_size_threshold": 0}
        pa.orc.write_table(table, path, stripe_size=1024, batch_size=_PART_ROWS, **options)

    def _read(self, path: Path) -> list[bytes]:
        return [value.encode() for value in pa.orc.read_table(path)["v"].to_pylist()]

    def _split_of_rows(self, path: Path) -> Iterator[int]:
        for offset, rows in _stripes(path.read_bytes()):
            yield from [offset // SPLIT_SIZE * SPLIT_SIZE] * rows


class Avro(FileSubject):
    suffix = ".avro"
    source = 'format = "avro"'
    marker = bytes(range(200, 216))

    def _write(self, path: Path, rows: list[bytes]) -> None:
        schema = {"type": "record", "name": "R", "fields": [{"name": "v", "type": "string"}]}
        with path.open("wb") as file:
            records = ({"v": row.decode()} for row in rows)
            fastavro.writer(file, schema, records, sync_interval=_LINE_BYTES * 5, sync_marker=self.marker)

    def _read(self, path: Path) -> list[bytes]:
        return [str(row["v"]).encode() for row in avro_rows(path.read_bytes())[1]]

    def _split_of_rows(self, path: Path) -> Iterator[int]:
        data = path.read_bytes()
        with path.open("rb") as file:
            for block in fastavro.block_reader(file):
                before = data.rindex(self.marker, 0, block.offset)
                yield from [before // SPLIT_SIZE * SPLIT_SIZE] * block.num_records


class Ledger(FileSubject):
    """Of a kind that is read in Python: columns that records are go straight to the producer."""

    needs_spark = False
    kind = ledger.LEDGERS
    suffix = ".ledger"
    source = 'format = "ledger"'
    where = 'folder = "data"'

    def is_covered(self, splits: list[Split]) -> bool:
        starts = [place(split)[1] for split in splits]
        ends = list(itertools.accumulate(split.size for split in splits))
        return starts == [0, *ends[:-1]] and ends[-1] == len(self._read(self._path(splits[0].item)))

    def _write(self, path: Path, rows: list[bytes]) -> None:
        ledger.write_rows(path, rows)

    def _read(self, path: Path) -> list[bytes]:
        return ledger.read_rows(path)

    def _split_of_rows(self, path: Path) -> Iterator[int]:
        return (number // ledger.ROWS * ledger.ROWS for number, _ in enumerate(self._read(path)))


class LedgerBySql(Ledger):
    """The same columns through Spark SQL, as soon as a spec asks for more than columns."""

    needs_spark = True
    value = "concat(v, '')"


class JsonToAvro(InAvro, Json):
    pass


class ParquetInBucketToAvro(InAvro, ParquetInBucket):
    pass


class XmlToAvro(InAvro, Xml):
    """Read in Python, but not straight to the producer: Spark writes Avro."""


class TopicToAvro(InAvro, Topic):
    value = "CAST(value AS STRING)"


class TableToAvro(InAvro, Table):
    pass


class JsonToJsonSchema(InJsonSchema, Json):
    pass


class TableToJsonSchema(InJsonSchema, Table):
    pass


class JsonToDead(Unparsable, Json):
    pass


class TextToDead(TooLong, Text):
    """Read by the tasks; a row that cannot be sent lies in several splits."""


class XmlToDead(WithoutKey, Xml):
    """Read in Python: the key is a column."""


class ParquetInBucketToDead(NoSuchPartition, ParquetInBucket):
    pass


class TopicToDead(TooLongToKeep, Topic):
    """Records go straight to the producer."""


class TableToDead(BeforeTheEpoch, Table):
    pass


class JsonToAvroToDead(Unfit, InAvro, Json):
    pass


class JsonWhole(InOneTransaction, Json):
    """Spark computes the rows, and the end row behind them."""


class TextWhole(InOneTransaction, Text):
    """The task that reads the lines says when it has given all."""


class XmlWhole(InOneTransaction, Xml):
    """Read in Python, straight to the producer."""


class XmlBySqlWhole(InOneTransaction, XmlBySql):
    """Read in Python, and the end row comes from Spark."""


class ParquetWhole(InOneTransaction, Parquet):
    pass


class TextInBucketWhole(InOneTransaction, TextInBucket):
    pass


class ParquetInBucketWhole(InOneTransaction, ParquetInBucket):
    pass


class TopicWhole(InOneTransaction, Topic):
    pass


class TopicBySqlWhole(InOneTransaction, TopicBySql):
    pass


class TableWhole(InOneTransaction, Table):
    pass


class TableByTextWhole(InOneTransaction, TableByText):
    pass


class JsonToDeadWhole(InOneTransaction, JsonToDead):
    """Two topics in the one transaction."""


class TextToDeadWhole(InOneTransaction, TextToDead):
    """The same by tasks that read themselves. Some splits have no row: those of a row that lies in several."""


def _stripes(file: bytes) -> Iterator[tuple[int, int]]:
    """Yield first byte and number of rows of each stripe of an ORC file whose footer is not compressed."""
    script = file[-1 - file[-1] : -1]
    footer_length = next(value for field, value in _fields(script) if field == 1)
    assert isinstance(footer_length, int)
    for field, value in _fields(file[-1 - file[-1] - footer_length : -1 - file[-1]]):
        if field == 3:
            assert isinstance(value, bytes)
            stripe = dict(_fields(value))
            yield int(stripe.get(1, 0)), int(stripe[5])


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a protobuf message: numbers, and what has a length."""
    at = 0

    def number() -> int:
        nonlocal at
        found = shift = 0
        while True:
            byte = message[at]
            at += 1
            found |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return found

    while at < len(message):
        tag = number()
        if tag & 7 == 0:
            yield tag >> 3, number()
        else:
            assert tag & 7 == 2, "ORC's footers hold no other wire type"
            length = number()
            at += length
            yield tag >> 3, message[at - length : at]


KINDS: dict[str, type[Any]] = {
    "json": Json,
    "csv": Csv,
    "text": Text,
    "text.gz": TextGz,
    "json.multiLine": JsonDocument,
    "csv.multiLine": CsvOverLines,
    "xml": Xml,
    "xml.sql": XmlBySql,
    "text.s3": TextInBucket,
    "text.gz.s3": TextGzInBucket,
    "text.s3.sql": TextInBucketBySql,
    "xml.s3": XmlInBucket,
    "json.s3": JsonInBucket,
    "text.hdfs": TextInHdfs,
    "json.hdfs": JsonInHdfs,
    "parquet": Parquet,
    "parquet.s3": ParquetInBucket,
    "orc": Orc,
    "avro": Avro,
    "ledger": Ledger,
    "ledger.sql": LedgerBySql,
    "kafka": Topic,
    "kafka.sql": TopicBySql,
    "postgres": Table,
    "postgres.incremental": Incremental,
    "postgres.query": Query,
    "postgres.sql": TableByText,
    "postgres.two.sql": TableByTwo,
    "json.to.avro": JsonToAvro,
    "xml.to.avro": XmlToAvro,
    "parquet.s3.to.avro": ParquetInBucketToAvro,
    "kafka.to.avro": TopicToAvro,
    "postgres.to.avro": TableToAvro,
    "json.to.json-schema": JsonToJsonSchema,
    "postgres.to.json-schema": TableToJsonSchema,
    "json.to.dead": JsonToDead,
    "text.to.dead": TextToDead,
    "xml.to.dead": XmlToDead,
    "parquet.s3.to.dead": ParquetInBucketToDead,
    "kafka.to.dead": TopicToDead,
    "postgres.to.dead": TableToDead,
    "json.to.avro.to.dead": JsonToAvroToDead,
    "json.whole": JsonWhole,
    "text.whole": TextWhole,
    "xml.whole": XmlWhole,
    "xml.sql.whole": XmlBySqlWhole,
    "parquet.whole": ParquetWhole,
    "text.s3.whole": TextInBucketWhole,
    "parquet.s3.whole": ParquetInBucketWhole,
    "kafka.whole": TopicWhole,
    "kafka.sql.whole": TopicBySqlWhole,
    "postgres.whole": TableWhole,
    "postgres.sql.whole": TableByTextWhole,
    "json.to.dead.whole": JsonToDeadWhole,
    "text.to.dead.whole": TextToDeadWhole,
}
# Kinds that send all in one transaction, and those of which a transaction may end in the middle of a job, and of a split.
WHOLE = [name for name, kind in KINDS.items() if issubclass(kind, InOneTransaction)]
BY_PARTS = [name for name in KINDS if name not in WHOLE]
# Kinds whose items are edited, touched and vanish one by one.
CHANGING = [name for name, kind in KINDS.items() if not issubclass(kind, Topic | Table)]
# Those of which an edit can keep all that a listing tells.
UNSEEN = [name for name in CHANGING if not issubclass(KINDS[name], InStore)]
# Those of which a run reads what was added since everything was sent.
GROWING = [name for name, kind in KINDS.items() if not issubclass(kind, Table) or kind is Incremental]
# Those whose records are encoded by a schema, where a row that does not fit ends its split.
BY_SCHEMA = [
    name for name, kind in KINDS.items() if issubclass(kind, ByRegistry) and not issubclass(kind, WithDeadLetters)
]
# Those with rows that the topic does not take as it is configured.
MENDED = [name for name in BY_PARTS if issubclass(KINDS[name], WithDeadLetters) and KINDS[name].sink_config]
# Those that lie where the executors of a cluster reach them.
SHARED = [name for name in BY_PARTS if issubclass(KINDS[name], InStore | Topic | Table)]
# Two of these that send all in one transaction: by Spark SQL, and by a task that reads itself.
SHARED_WHOLE = ["parquet.s3.whole", "postgres.whole"]
# Each way of reading in one kind, and each destination with Spark and with tasks that read themselves: where a test costs
# seconds, every run tests these, and the others take turns. Spark is given topics, tables, XML and Parquet as it is given
# ledgers; it reads stores in test_hdfs.py, test_buckets.py and test_files_by_format.py.
REPRESENTATIVE = {
    "json.to.avro.to.dead": "Python reads lines for Spark; Avro, dead letters",
    "json.multiLine": "Python reads files that are never cut",
    "csv": "Python reads lines for Spark, with a header",
    "avro": "Spark reads parts of files",
    "parquet": "Python reads parts of files for Spark",
    "ledger.sql": "Python reads for Spark",
    "postgres.to.json-schema": "Python reads for Spark, from a service; JSON Schema",
    "json.whole": "one transaction, through Spark",
    "text.to.dead": "tasks read lines; dead letters",
    "text.hdfs": "tasks read lines from a store",
    "xml": "tasks read columns that records are",
    "kafka": "tasks read a topic",
    "postgres.incremental": "tasks read a table",
    "text.whole": "one transaction, by tasks",
}
# Where a test rests on listings and versions, not on how rows are read: a kind of each that has its own, by Spark and by tasks.
OF_EACH_LISTING = ("text.to.dead", "text.hdfs", "ledger.sql", "kafka", "postgres.incremental", "json.whole")
# The kinds of sources, whose listings and splits every run tests: destinations change neither.
PLAIN = [name for name, kind in KINDS.items() if not issubclass(kind, ByRegistry | WithDeadLetters | InOneTransaction)]


def paired(names: Iterable[str], *others: pytest.MarkDecorator, always: Collection[str] = REPRESENTATIVE) -> Any:
    """Return the parameters of a test of these kinds: all but those in `always` take turns, and have the marks `others`."""
    marks = [pytest.mark.in_turns("one kind of source each"), *others]
    return pytest.mark.parametrize(
        "subject", [pytest.param(name, marks=[] if name in always else marks) for name in names], indirect=True
    )
