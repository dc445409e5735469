"""Everything of Spark that knows no source: the session (session.py), what a kind says about how it is read (scan.py), from
rows to record columns, the job (job.py), and what runs inside its Python workers (worker.py)."""
