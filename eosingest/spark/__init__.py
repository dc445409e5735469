"""Everything that knows pyspark: the session (session.py), from files to record columns (read.py), which splits Spark
will read (scan.py), the job (job.py), and what runs inside its Python workers (worker.py)."""
