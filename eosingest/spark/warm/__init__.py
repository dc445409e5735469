"""Keeps a JVM warm, from `eosingest spark up` on: each run makes and stops its SparkContext in it."""
