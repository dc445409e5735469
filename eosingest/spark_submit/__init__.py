"""Contains only the script for spark-submit, which puts this folder first on Python's path: add no other module."""
