"""Takes the way for librdkafkas that are not laid out as expected: one call for each record."""

import eosingest.kafka.produce_batch

eosingest.kafka.produce_batch._library = lambda: None
