"""What may stand in `source.options`, `sink.properties` and `spark.conf`, and why the rest may not.

Reader options are an allow-list: some Spark options drop files or rows without a word, and the position of a split is
a count of rows. Producer and Spark settings are refused where the guarantee rests on them; each refusal names the
alternative. Every function yields (key, text) pairs; `load` puts file and line in front.
"""

from __future__ import annotations

import codecs
import difflib
import re
from collections.abc import Iterator, Mapping

Refusals = Iterator[tuple[str, str]]

_BOOLEAN = re.compile(r"true|false", re.IGNORECASE)
_WHOLE = re.compile(r"-?[0-9]+")
_FRACTION = re.compile(r"[0-9]*\.?[0-9]+([eE]-?[0-9]+)?")
_TEXT = re.compile(r".*", re.DOTALL)
_CHARACTER = re.compile(r"[\u0000-\uffff]?")  # one of Java's
_UNESCAPED = re.compile(
    r"STOP_AT_CLOSING_QUOTE|BACK_TO_DELIMITER|STOP_AT_DELIMITER|SKIP_VALUE|RAISE_ERROR", re.IGNORECASE
)
_SHAPES = {
    _CHARACTER: "must be one character, or empty for none",
    _UNESCAPED: f"must be one of {', '.join(_UNESCAPED.pattern.split('|'))}",
    _BOOLEAN: "must be true or false",
    _WHOLE: "must be a whole number",
    _FRACTION: "must be a number above 0 and up to 1",
}

_DATES: dict[str, re.Pattern[str]] = {
    "dateFormat": _TEXT,
    "timestampFormat": _TEXT,
    "timestampNTZFormat": _TEXT,
    "timeZone": _TEXT,
    "locale": _TEXT,
    "enableDateTimeParsingFallback": _BOOLEAN,
    "encoding": _TEXT,
    "charset": _TEXT,
    "lineSep": _TEXT,
    "samplingRatio": _FRACTION,
}
# From the options that Spark 4.0's own readers declare (JSONOptions, CSVOptions, …), less those that only write.
ALLOWED_OPTIONS: dict[str, dict[str, re.Pattern[str]]] = {
    "json": {
        **_DATES,
        **dict.fromkeys(("primitivesAsString", "prefersDecimal", "inferTimestamp", "dropFieldIfAllNull"), _BOOLEAN),
        **dict.fromkeys(("allowComments", "allowUnquotedFieldNames", "allowSingleQuotes"), _BOOLEAN),
        **dict.fromkeys(("allowNumericLeadingZeros", "allowNonNumericNumbers", "allowUnquotedControlChars"), _BOOLEAN),
        "allowBackslashEscapingAnyCharacter": _BOOLEAN,
    },
    "csv": {
        **_DATES,
        **dict.fromkeys(("header", "inferSchema", "enforceSchema", "preferDate"), _BOOLEAN),
        **dict.fromkeys(("ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace"), _BOOLEAN),
        **dict.fromkeys(("maxColumns", "maxCharsPerColumn", "inputBufferSize"), _WHOLE),
        **dict.fromkeys(("quote", "escape", "comment", "charToEscapeQuoteEscaping"), _CHARACTER),
        **dict.fromkeys(("sep", "delimiter"), _TEXT),
        **dict.fromkeys(("nullValue", "emptyValue", "nanValue", "positiveInf", "negativeInf"), _TEXT),
        "unescapedQuoteHandling": _UNESCAPED,
    },
    "text": {"lineSep": _TEXT},  # not encoding: the reader takes the bytes as they are
    "parquet": {"mergeSchema": _BOOLEAN, "datetimeRebaseMode": _TEXT, "int96RebaseMode": _TEXT},
    "orc": {"mergeSchema": _BOOLEAN},
}

_CORRUPT = "corrupt rows always end the run with file, split and row named; leave it out"
_LISTING = "the files are listed once, by eosingest; say it with a glob in source.path"
_DROPS = "it would drop rows without a word; leave it out"
_WRITES = "it is for writing only; when reading, Spark takes the compression from the file's name"
_REFUSED_OPTIONS = {
    "mode": _CORRUPT,
    "columnNameOfCorruptRecord": _CORRUPT,
    "ignoreCorruptFiles": _DROPS,
    "ignoreMissingFiles": _DROPS,
    **dict.fromkeys(("pathGlobFilter", "recursiveFileLookup", "__globPaths__"), _LISTING),
    **dict.fromkeys(("modifiedBefore", "modifiedAfter"), "files are known by content, not by age; see source.min_age"),
    "basePath": "the files are listed once, by eosingest; name the base folder in source.root",
    "path": "write source.path",
    "paths": "write source.path",
    "schema": "write source.schema",
    "wholetext": "a file must be read line by line, so that it can be cut; leave it out",
    "multiLine": "a record over several lines cannot be cut and is not supported; write one record a line",
    "columnPruning": "it hides corrupt rows; leave it out",
    "singleVariantColumn": "it is not supported; write source.schema",
    **dict.fromkeys(("compression", "codec", "extension", "quoteAll", "escapeQuotes", "pretty"), _WRITES),
    **dict.fromkeys(("ignoreNullFields", "writeNonAsciiCharacterAsCodePoint", "parquet.compression"), _WRITES),
    "orc.compress": _WRITES,
}


def canonical_options(format_: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options under the names Spark documents: Spark itself compares them without regard to case."""
    known = {name.lower(): name for name in ALLOWED_OPTIONS.get(format_, {})}
    return {known.get(name.lower(), name): value for name, value in options.items()}


def refused_options(format_: str, options: Mapping[str, str], *, has_schema: bool) -> Refusals:
    """Yield the reader options that are unknown, refused, given twice or not of their type."""
    allowed = {name.lower(): name for name in ALLOWED_OPTIONS[format_]}
    refused = {name.lower(): reason for name, reason in _REFUSED_OPTIONS.items()}
    seen: set[str] = set()
    for name, value in options.items():
        key = name.lower()
        if key in seen:
            yield name, "given twice; Spark does not tell upper from lower case here"
        seen.add(key)
        if key in refused:
            yield name, f"not allowed: {refused[key]}"
        elif key not in allowed:
            yield name, f"unknown option for {format_}{_did_you_mean(key, allowed)}"
        elif not ALLOWED_OPTIONS[format_][allowed[key]].fullmatch(value):
            yield name, _SHAPES[ALLOWED_OPTIONS[format_][allowed[key]]]
    lower = {name.lower(): value.lower() for name, value in options.items()}
    for one, other in (("sep", "delimiter"), ("encoding", "charset")):
        if one in lower and other in lower:
            yield allowed.get(other, other), f"is the same option as {one}; write one of them"
    if format_ in ("csv", "json"):
        yield from _refused_encoding(lower, allowed)
    if format_ == "csv":
        yield from _refused_csv(lower, has_schema)


# By Python's names. Of each, Python refuses all that Java would replace without a word (tests/reading/test_json_csv_rows.py).
_ONE_BYTE = (
    *(f"iso8859-{number}" for number in (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 15, 16)),
    *(f"cp125{number}" for number in range(9)),
    *("koi8-r", "koi8-u", "cp437", "cp850", "cp852", "cp855", "cp857", "cp858", "cp862", "cp866"),
)
ENCODINGS = frozenset(("utf-8", "ascii", *_ONE_BYTE, "shift_jis", "gbk", "gb2312", "euc_kr"))
_WIDE = frozenset(("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"))
_ICONV = "write the files as UTF-8: iconv -f … -t UTF-8"


def _refused_encoding(options: Mapping[str, str], allowed: Mapping[str, str]) -> Refusals:
    name = next((name for name in ("encoding", "charset") if name in options), None)
    if name is None:
        return
    try:
        encoding = codecs.lookup(options[name]).name
    except LookupError:
        encoding = ""
    if encoding in ("utf-16", "utf-32"):
        wide = encoding.upper()
        yield allowed[name], f"lines are decoded one by one, so say the order of bytes: {wide}LE or {wide}BE"
    elif encoding in _WIDE and "linesep" not in options:
        yield allowed[name], 'a line would be cut in the middle of its end; say where lines end: lineSep = "\\n"'
    elif encoding not in ENCODINGS | _WIDE:
        yield allowed[name], f"not an encoding that is known to be read exactly; {_ICONV}"


def _refused_csv(options: Mapping[str, str], has_schema: bool) -> Refusals:
    if "enforceschema" in options and options.get("header") == "true":
        yield "enforceSchema", "not allowed: with a header the columns are always checked against it; leave it out"
    if options.get("inferschema") == "true" and has_schema:
        yield "inferSchema", "has no effect beside source.schema; drop one of them"


def _did_you_mean(key: str, known: Mapping[str, str]) -> str:
    close = difflib.get_close_matches(key, known, n=1)
    return f'; did you mean "{known[close[0]]}"?' if close else f"; known are {', '.join(sorted(known.values()))}"


_GUARANTEE = "the guarantee rests on it; leave it out"
_READER = "eosingest reads its offsets topic its own way; leave it out"
_JAVA_STORE = "that is a Java client's setting; convert the store to PEM files and name them in"
_REFUSED_PROPERTIES = {
    **dict.fromkeys(("acks", "request.required.acks"), f"it is always all: {_GUARANTEE}"),
    "enable.idempotence": f"it is always true: {_GUARANTEE}",
    **dict.fromkeys(
        ("retry.backoff.ms", "retry.backoff.max.ms"), f"a commit that was repeated is known by its time: {_GUARANTEE}"
    ),
    "enable.gapless.guarantee": "it would end a producer where eosingest resumes; leave it out",
    "queuing.strategy": f"records must keep their order: {_GUARANTEE}",
    "delivery.report.only.error": f"every delivery is checked: {_GUARANTEE}",
    "transactional.id": "it is made of prefix, job and task; set sink.transactional_id_prefix",
    "transaction.timeout.ms": "set transaction.timeout",
    **dict.fromkeys(
        ("message.timeout.ms", "delivery.timeout.ms"), "it follows the transaction; set transaction.timeout"
    ),
    **dict.fromkeys(("bootstrap.servers", "metadata.broker.list"), "set sink.bootstrap_servers"),
    **dict.fromkeys(("partitioner", "partitioner_cb"), "set sink.partitioner"),
    "allow.auto.create.topics": "a topic made by accident has the wrong settings; set sink.create",
    **dict.fromkeys(("isolation.level", "auto.offset.reset", "enable.partition.eof", "offset.store.method"), _READER),
    **dict.fromkeys(("enable.auto.commit", "auto.commit.enable", "enable.auto.offset.store"), _READER),
    **dict.fromkeys(("group.id", "group.instance.id", "group.protocol", "share.acknowledgement.mode"), _READER),
    "default.topic.config": "write its settings into sink.properties",
    "topic.blacklist": "it could hide the topics that are written to; leave it out",
    "test.mock.num.brokers": 'a mock is no Kafka; write sink.bootstrap_servers = "embedded"',
    **dict.fromkeys(("ssl.truststore.location", "ssl.truststore.certificates"), f"{_JAVA_STORE} ssl.ca.location"),
    **dict.fromkeys(("ssl.truststore.password", "ssl.truststore.type"), f"{_JAVA_STORE} ssl.ca.location"),
    "ssl.keystore.type": f"{_JAVA_STORE} ssl.certificate.location and ssl.key.location",
    "sasl.jaas.config": "that is a Java client's setting; set sasl.username and sasl.password",
    **dict.fromkeys(("key.serializer", "value.serializer"), "set record.key and record.value"),
    "request.timeout": "set request.timeout.ms",
}
_IN_FLIGHT = ("max.in.flight", "max.in.flight.requests.per.connection")
_RETRIES = ("retries", "message.send.max.retries")


def refused_properties(properties: Mapping[str, str], timeout: float) -> Refusals:
    """Yield the producer properties that would break the guarantee. `timeout`: transaction.timeout in seconds.

    Which connection properties both clients can honour is for `kafka.config`, whether a name exists for librdkafka.
    """
    for name, value in properties.items():
        key = name.lower()
        if key in _REFUSED_PROPERTIES:
            yield name, f"not allowed: {_REFUSED_PROPERTIES[key]}"
        elif key.endswith("_cb") or key in ("opaque", "msg_order_cmp", "enabled_events"):
            yield name, "not allowed: it cannot be written in a file; leave it out"
        elif key in _IN_FLIGHT and not 1 <= _whole(value, 0) <= 5:
            yield name, "must be 1 to 5: with more the order of records cannot be kept"
        elif key in _RETRIES and _whole(value, 0) < 1:
            yield name, "must be 1 or more: without retries no transaction is idempotent"
        elif key == "socket.timeout.ms" and _whole(value, 0) > timeout * 1000 - 100:
            yield name, "must be at least 100 ms below transaction.timeout"


def _whole(value: str, otherwise: int) -> int:
    return int(value) if _WHOLE.fullmatch(value.strip()) else otherwise


# Spark settings that the protocol owns: an entry that ends with `.` or `*` stands for all keys that begin so.
_OWNED = {
    "spark.speculation*": "two attempts of one task would fence each other",
    "spark.sql.adaptive.*": "it would move rows between tasks",
    "spark.sql.files.*": "the cuts inside a file must stay the same; set source.split_size",
    "spark.sql.session.timeZone": "it is always UTC, so that the same rows give the same bytes everywhere",
    "spark.sql.ansi.enabled": "it is always true: a bad cast is an error, not a null",
    "spark.task.maxFailures": "tasks need retries; the master is always started with them",
    "spark.stage.maxConsecutiveAttempts": "tasks need retries",
    "spark.master": "set spark.master in the spec's own table: [spark] master = …",
    "spark.app.name": "it is the job's name",
    "spark.remote": "Spark Connect is not supported; set [spark] master = …",
    "spark.sql.sources.useV1SourceList": "the splits are read back from the plans of these readers",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "the files are listed once, by eosingest",
    "spark.sql.csv.parser.columnPruning.enabled": "it hides corrupt rows",
    "spark.sql.columnNameOfCorruptRecord": "corrupt rows always end the run with file, split and row named",
    "spark.sql.jsonGenerator.ignoreNullFields": "null fields are always kept",
    "spark.sql.variable.substitute": "it would put this machine's environment into expressions",
    "spark.hadoop.mapreduce.input.linerecordreader.line.maxlength": "longer lines would be dropped",
    "spark.hadoop.parquet.page.verify-checksum.enabled": "checksums that a file carries are always verified",
    "spark.ui.showConsoleProgress": "eosingest shows its own progress",
}
PROTECTED_SPARK_CONF: frozenset[str] = frozenset(_OWNED)


_JAVA_OPTIONS = re.compile(r"spark\.(driver|executor)\.(extra|default)JavaOptions", re.IGNORECASE)
_OF_THE_MACHINE = re.compile(r"-D(user\.(language|country|region|variant|script|extensions)|file\.encoding)\b")


def protects(key: str) -> str | None:
    """Return why a Spark setting is not the user's to set, or None. Upper and lower case are one here."""
    lower = key.lower()
    for pattern, reason in _OWNED.items():
        stem = pattern.lower().removesuffix("*")
        if lower == stem or (pattern.endswith("*") and lower.startswith(stem)):
            return reason
    return None


def refused_conf(conf: Mapping[str, str]) -> Refusals:
    """Yield the Spark settings that the protocol owns, and keys that are none of Spark's."""
    for key in conf:
        reason = protects(key)
        if reason is not None:
            yield key, f"not allowed: {reason}"
        elif key.lower() == "spark.submit.deploymode" and conf[key].strip().lower() != "client":
            yield (
                key,
                "not allowed: this process is the driver, and no setting can send it elsewhere; leave it out. For a driver in"
                " the cluster: spark-submit --deploy-mode cluster $(eosingest submit-script) run … (docs/clusters.md)",
            )
        elif _JAVA_OPTIONS.fullmatch(key) and _OF_THE_MACHINE.search(conf[key]):
            yield (
                key,
                "not allowed: the JVM's language and encoding are always the same, or the same rows gave other bytes",
            )
        elif not key.startswith("spark."):
            yield key, 'not a Spark setting; its keys begin with "spark.", Hadoop\'s with "spark.hadoop."'


# For digests: an absent option means the same as this value. Not listed: options whose absence is a mode of its own.
DEFAULT_OPTIONS: dict[str, dict[str, str]] = {
    "json": {
        **dict.fromkeys(("primitivesAsString", "prefersDecimal", "inferTimestamp", "dropFieldIfAllNull"), "false"),
        **dict.fromkeys(("allowComments", "allowUnquotedFieldNames", "allowNumericLeadingZeros"), "false"),
        **dict.fromkeys(("allowUnquotedControlChars", "allowBackslashEscapingAnyCharacter"), "false"),
        **dict.fromkeys(("allowSingleQuotes", "allowNonNumericNumbers"), "true"),
        "samplingRatio": "1.0",
        "locale": "en-US",
        "timeZone": "UTC",
    },
    "csv": {
        **dict.fromkeys(("header", "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace"), "false"),
        **dict.fromkeys(("inferSchema", "preferDate", "enforceSchema"), "true"),
        "sep": ",",
        "encoding": "UTF-8",
        "quote": '"',
        "escape": "\\",
        "comment": "",
        "nullValue": "",
        "nanValue": "NaN",
        "positiveInf": "Inf",
        "negativeInf": "-Inf",
        "maxColumns": "20480",
        "maxCharsPerColumn": "-1",
        "unescapedQuoteHandling": "STOP_AT_DELIMITER",
        "samplingRatio": "1.0",
        "locale": "en-US",
        "timeZone": "UTC",
    },
    "text": {},
    "parquet": {"mergeSchema": "true"},  # ours where no schema is given
    "orc": {"mergeSchema": "true"},
}
_INFERENCE = frozenset(
    [
        "inferSchema",
        "preferDate",
        "samplingRatio",
        "primitivesAsString",
        "prefersDecimal",
        "inferTimestamp",
        "dropFieldIfAllNull",
        "mergeSchema",
    ]
)
_ALIASES = {"delimiter": "sep", "charset": "encoding"}


def reader_options(format_: str, options: Mapping[str, str], *, has_schema: bool) -> dict[str, str]:
    """Return the options to give to Spark's reader: the user's, and those of ours that follow from the format.

    Of JSON an encoding that is UTF-8 is not handed on: with any, Spark writes numbers that are read as STRING anew.
    """
    ours = {}
    if format_ == "json":
        options = {name: value for name, value in options.items() if not _names_utf_8(name, value)}
    if format_ == "csv" and options.get("header", "").lower() == "true":
        ours["enforceSchema"] = "false"  # otherwise reordered columns swap without a word
    if format_ == "csv" and not has_schema and "inferSchema" not in options:
        ours["inferSchema"] = "true"
    return {**options, **ours}


def _names_utf_8(name: str, value: str) -> bool:
    if name.lower() not in ("encoding", "charset"):
        return False
    try:
        return codecs.lookup(value).name == "utf-8"
    except LookupError:
        return False


def meaningful_options(format_: str, options: Mapping[str, str], *, has_schema: bool) -> dict[str, str]:
    """Return the options by meaning: aliases folded, defaults and what a given schema makes idle left out, sorted."""
    defaults = DEFAULT_OPTIONS[format_]
    found = {}
    for name, value in options.items():
        name = _ALIASES.get(name, name)
        if ALLOWED_OPTIONS[format_].get(name) is _BOOLEAN:
            value = value.lower()
        if value != defaults.get(name) and not (has_schema and name in _INFERENCE):
            found[name] = value
    return dict(sorted(found.items()))
