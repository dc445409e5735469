"""Wires the parts of each command together: the only package that imports spec, protocol, sources, Kafka and Spark at once."""
