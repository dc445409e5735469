"""Deterministic simulation: the production driver.py and task.py against a Kafka in memory, under one seeded scheduler.

    schedule.py ─▶ scheduler.py (who moves next, virtual time)     faults.py (what breaks, and when)
        │               ▲
        ├─▶ spark.py: drivers, jobs, attempts of tasks ─▶ network.py ─▶ tests/support/memory_kafka ─▶ witness.py (P1-P10)
        └─▶ source.py: files, splits, rows

`python -m tests.simulation --schedules N [--seed S]` runs many; rules.py switches rules of the protocol off.
"""
