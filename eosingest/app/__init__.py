"""Puts the parts of each verb together: the only place that knows spec, protocol, sources, Kafka and Spark all at once."""
