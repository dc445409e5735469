"""Runs Spark, for every kind of source. session.py starts Spark, scan.py defines how a source is read, record_columns.py
computes the record columns, job.py runs the job, worker.py runs in the Python workers."""
