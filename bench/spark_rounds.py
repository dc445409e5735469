"""A contender: Spark's own Kafka sink (at-least-once), in a session that is kept. Its Python has no eosingest.

Reads lines of JSON (what to read, and where to) and answers each with one ({"seconds": of the write}).
"""

import json
import os
import sys
import time

from pyspark.sql import SparkSession

NEEDED = ("commons-pool2", "kafka-clients", "postgresql", "spark-")  # the rest of what was fetched Spark has itself


def main() -> None:
    """Answer until the input ends. The argument is the folder of the sink's jars."""
    jars = [os.path.join(sys.argv[1], name) for name in sorted(os.listdir(sys.argv[1])) if name.startswith(NEEDED)]
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", ",".join(jars))
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    for line in sys.stdin:
        work = json.loads(line)
        began = time.monotonic()
        reader = spark.read.format(work["format"]).options(**work["options"])
        rows = (reader.schema(work["schema"]) if work["schema"] else reader).load(work["path"])
        if work["where"]:
            rows = rows.where(work["where"])
        columns = [f"{work['value']} AS value"] + ([f"{work['key']} AS key"] if work["key"] else [])
        writer = rows.selectExpr(*columns).write.format("kafka").option("topic", work["topic"])
        for name, value in work["properties"].items():
            writer = writer.option(f"kafka.{name}", value)
        writer.save()
        print(json.dumps({"seconds": time.monotonic() - began}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
