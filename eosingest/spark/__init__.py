"""The Spark side, independent of the kind of source: the session (session.py), how a source is read (scan.py), the record
columns made of its rows (record_columns.py), the job (job.py), and the code that runs in Python workers (worker.py)."""
