"""eosingest: one-shot, exactly-once ingestion runs into Apache Kafka.

    spec.toml ─▶ Spec ─▶ Source ─▶ splits ─┐
                                           ├─▶ Plan ─▶ Spark: rows ─▶ key/value bytes (JVM) ─▶ Arrow batches ─┐
    offsets topic ─▶ committed positions ──┘                                                                 │
          ▲                                                              one Spark task ◀────────────────────┘
          └──── records + offset records, one transaction ◀── begin · produce… · offset records last · commit
    after the job: read the offsets topic back ─▶ every split done? ─▶ complete record ─▶ report, exit code

`run.py` puts the parts together; `driver.py` is the run's way from top to bottom, `task.py` is its heart.
"""

import logging

__version__ = "0.1.0"

# librdkafka's and our own log lines go where an application sends them; the command line sends them nowhere by default.
logging.getLogger("eosingest").addHandler(logging.NullHandler())
logging.getLogger("eosingest").propagate = False
