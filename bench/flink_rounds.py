"""A contender: Apache Flink's Kafka sink, exactly once, in batch mode. Its Python has PyFlink and no eosingest.

Reads lines of JSON (what to read, and where to) and answers each with one ({"seconds": of the job}).
"""

import json
import sys
import time
from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment

SOURCE = """
CREATE TEMPORARY TABLE source_{number} (line BYTES) WITH (
  'connector' = 'filesystem', 'path' = '{path}', 'format' = 'raw'
)"""
SINK = """
CREATE TEMPORARY TABLE sink_{number} (line BYTES) WITH (
  'connector' = 'kafka', 'topic' = '{topic}', 'format' = 'raw',
  'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = '{topic}',
  {properties}
)"""


def main() -> None:
    """Answer until the input ends. The argument is the connector's jar."""
    table = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    table.get_config().set("pipeline.jars", Path(sys.argv[1]).as_uri())
    table.get_config().set("parallelism.default", "2")
    for number, line in enumerate(sys.stdin):
        work = json.loads(line)
        properties = {**work["properties"], "transaction.timeout.ms": "600000"}
        options = ",\n  ".join(f"'properties.{name}' = '{value}'" for name, value in properties.items())
        table.execute_sql(SOURCE.format(number=number, path=work["path"]))
        table.execute_sql(SINK.format(number=number, topic=work["topic"], properties=options))
        began = time.monotonic()
        table.execute_sql(f"INSERT INTO sink_{number} SELECT line FROM source_{number}").wait()
        print(json.dumps({"seconds": time.monotonic() - began}), flush=True)


if __name__ == "__main__":
    main()
