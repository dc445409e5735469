"""The Python workers of a local Spark: forked from a process that has imported what a task needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from pathlib import Path
from eosingest.spark import session

def at_start(_):
    return [name in sys.modules for name in ("confluent_kafka", "pyarrow", "eosingest.protocol.task")]

spark = session.start(
    job="job", master="local[2]", conf={}, of_source={}, log_file=Path(sys.argv[1]) / "spark.log"
)
print(spark.context.parallelize(range(2), 2).map(at_start).collect())
spark.stop()
"""


def test_workers_begin_with_their_imports_done(tmp_path: Path) -> None:
    """Breaks when Spark's own daemon forks them: each would import for half a second."""
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[[True, True, True], [True, True, True]]", done
