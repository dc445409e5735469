"""The folder of the script for spark-submit, which puts it before all others on Python's path: nothing else may lie here."""
