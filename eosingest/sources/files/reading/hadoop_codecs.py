"""Sets Hadoop's codecs for compressed text, by suffix: those for which a run's files were verified, and no others.

For rows.py, if Spark reads such files. Hadoop's own codecs do not work for two suffixes: that for .zst needs a native library,
that for .lz4 has its own framing. For .zst Spark's jars contain another codec. For .lz4 Janino, the compiler that Spark uses
for its own code, compiles our codec here, and it is sent to the executors: this needs no JDK and no build.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from eosingest.errors import SpecError
from eosingest.protocol.plan import Plan
from eosingest.sources.files.bytes.codecs import SUFFIXES, codec_of
from eosingest.sources.files.reading.planned_files import pending_files
from eosingest.sources.files.reading.spark_reader import hadoop_path

_CODECS = "io.compression.codecs"
_HADOOPS = "org.apache.hadoop.io.compress."
_ZSTD, _LZ4 = "io.airlift.compress.zstd.ZstdCodec", "eosingest.codec.Lz4FrameCodec"
_BY_NAME = "eosingest.codec.named."  # the package of codecs for files whose names do not show their codec
_SOURCE = Path(__file__).parent / "codec" / "Lz4FrameCodec.java"
# The classes that may read a file, by its codec.
_READ_BY = {
    "gzip": (f"{_HADOOPS}GzipCodec",),
    "bzip2": (f"{_HADOOPS}BZip2Codec",),
    "deflate": (f"{_HADOOPS}DeflateCodec", f"{_HADOOPS}DefaultCodec"),
    "zstd": (_ZSTD,),
    "lz4": (_LZ4,),
}
# Of a class that cannot be extended: the interface, and its methods.
_EXTENDS = {"zstd": f"implements {_HADOOPS}CompressionCodec"}
_DELEGATES = {
    "zstd": f"""
private final {_HADOOPS}CompressionCodec codec = new {_ZSTD}();
public {_HADOOPS}CompressionOutputStream createOutputStream(java.io.OutputStream out) throws java.io.IOException {{
  return codec.createOutputStream(out); }}
public {_HADOOPS}CompressionOutputStream createOutputStream(java.io.OutputStream out, {_HADOOPS}Compressor by)
  throws java.io.IOException {{ return codec.createOutputStream(out, by); }}
public Class getCompressorType() {{ return codec.getCompressorType(); }}
public {_HADOOPS}Compressor createCompressor() {{ return codec.createCompressor(); }}
public {_HADOOPS}CompressionInputStream createInputStream(java.io.InputStream in) throws java.io.IOException {{
  return codec.createInputStream(in); }}
public {_HADOOPS}CompressionInputStream createInputStream(java.io.InputStream in, {_HADOOPS}Decompressor by)
  throws java.io.IOException {{ return codec.createInputStream(in, by); }}
public Class getDecompressorType() {{ return codec.getDecompressorType(); }}
public {_HADOOPS}Decompressor createDecompressor() {{ return codec.createDecompressor(); }}
"""
}
_BESIDE = (
    f"{_HADOOPS}Lz4Codec",
    f"{_HADOOPS}SnappyCodec",
    f"{_HADOOPS}ZStandardCodec",
)  # may be configured, too: for these suffixes ours is used


def use(spark: SparkSession, plan: Plan) -> None:
    """Make Spark read the pending text files with the codecs that they were verified for; may be called again.

    Raises SpecError if a codec that the user configured would read one of them.
    """
    used = {codec_of(file.coded_path) for file in pending_files(plan)}
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    if "zstd" in used:
        _name(conf, _ZSTD)
    if "lz4" in used:
        if _LZ4 not in _named(conf):
            _compile(spark, conf, "eosingest-lz4", _SOURCE.read_text(encoding="utf-8"))
        _name(conf, _LZ4)
    _read_by_any_name(spark, conf, plan)
    if used != {None}:
        _refuse_others(spark, conf, plan)


def _named(conf: Any) -> list[str]:
    return [name.strip() for name in str(conf.get(_CODECS) or "").split(",") if name.strip()]


def _name(conf: Any, codec: str) -> None:
    """Put a codec last in the list: of several codecs for one suffix Hadoop uses the last."""
    others = [name for name in _named(conf) if name != codec]
    conf.set(_CODECS, ",".join([*others, codec]))


def _read_by_any_name(spark: SparkSession, conf: Any, plan: Plan) -> None:
    """Have the codec that the spec names read files whose names do not show it: one more class for each end of such names.

    Hadoop finds a codec by the end of a name alone. `_refuse_others` checks that it finds these.
    """
    wanted: dict[str, str] = {}
    for file in pending_files(plan):
        if file.coded_path != file.path:
            codec, end = str(file.compression), end_of_name(file.path.rpartition("/")[2])
            name = f"{codec}_{end.encode().hex()}"
            body = (
                f"{{ public String getDefaultExtension() {{ return {json.dumps(end)}; }} {_DELEGATES.get(codec, '')} }}"
            )
            wanted[_BY_NAME + name] = (
                f"public class {name} {_EXTENDS.get(codec, f'extends {_READ_BY[codec][0]}')} {body}"
            )
    conf.set(_CODECS, ",".join(name for name in _named(conf) if not name.startswith(_BY_NAME)))
    missing = [text for name, text in wanted.items() if conf.getClassByNameOrNull(name) is None]
    if missing:
        _compile(spark, conf, "eosingest-by-name", f"package {_BY_NAME.rstrip('.')}; {' '.join(missing)}")
    for name in wanted:
        _name(conf, name)


def end_of_name(name: str) -> str:
    """Return the end by which Hadoop finds a codec for a file of this name, and for others that end so.

    Of all known ends it takes the greatest one that, read backwards, is less than the name: so none may be between.
    """
    name = name.lower()  # as Hadoop does
    end = name[name.rindex(".") :] if "." in name[1:] else name[-1:]
    between = any(end[::-1] < known[::-1] < name[::-1] for known in (*SUFFIXES.values(), ".snappy"))
    return name[1:] if between or end == name else end


def _compile(spark: SparkSession, conf: Any, name: str, source: str) -> None:
    """Compile codecs, and add them to the class loaders of the driver and of the executors."""
    context, jvm = spark.sparkContext, spark._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()  # type: ignore[union-attr]
    compiler.setParentClassLoader(conf.getClassLoader())
    compiler.cook(source)
    jar = Path(context._temp_dir) / f"{name}-{len(list(Path(context._temp_dir).glob(f'{name}-*')))}.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for compiled, code in compiler.getBytecodes().items():
            archive.writestr(f"{compiled.replace('.', '/')}.class", code)
    context._jsc.addJar(jar.as_uri())
    # Tasks load the codec from the added jar; the driver, which checks with it whether files can be cut, by this class loader.
    urls = context._gateway.new_array(jvm.java.net.URL, 1)  # type: ignore[union-attr]
    urls[0] = jvm.java.net.URL(jar.as_uri())  # type: ignore[union-attr]
    conf.setClassLoader(jvm.java.net.URLClassLoader(urls, conf.getClassLoader()))  # type: ignore[union-attr]


def _refuse_others(spark: SparkSession, conf: Any, plan: Plan) -> None:
    """Raise SpecError if another codec would read a pending file, by its suffix: the file was not verified for it."""
    hadoop = spark._jvm.org.apache.hadoop  # type: ignore[union-attr]
    factory = hadoop.io.compress.CompressionCodecFactory
    known = {name for names in _READ_BY.values() for name in names} | {*_BESIDE}
    if {str(each.getName()) for each in factory.getCodecClasses(conf)} <= known:
        return
    codecs = factory(conf)
    for file in pending_files(plan):
        codec = codec_of(file.coded_path)
        if codec is None:
            continue
        found = codecs.getCodec(hadoop_path(spark._jvm, file.path))
        name = "no codec" if found is None else str(found.getClass().getName())
        if file.coded_path != file.path and not name.startswith(f"{_BY_NAME}{codec}_"):
            raise SpecError(
                f"{file.name}: Spark cannot read a file of this name as {codec}: Hadoop finds {name} by it",
                code="codec",
                hint=f"nothing was sent; read a copy whose name ends in {SUFFIXES[codec]}, without source.compression",
            )
        if file.coded_path == file.path and name not in _READ_BY.get(codec, ()):
            raise SpecError(
                f"{file.name}: by {_CODECS} it would be read by {name}, and not as the {codec} file that it is",
                code="codec",
                hint=f"nothing was sent; take the codec of this suffix out of spark.hadoop.{_CODECS}, or rename the file",
            )
