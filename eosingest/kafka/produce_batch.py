"""Hands many records to librdkafka in one call, in place: no Python object per record, without the GIL.

confluent-kafka's own `produce` takes one record a call. This module calls the same librdkafka, the one inside confluent-kafka's
extension module, for the same producer, through ctypes. That depends on two layouts that are no API of confluent-kafka: the
place of `rd_kafka_t` in a Producer object, and `rd_kafka_message_t`. Before use, the pointer is
checked for the first, librdkafka's version for the second; if one is not as expected, there is no BatchProducer, and the caller
uses `produce`.
"""

from __future__ import annotations

import ctypes
import logging
from typing import Any

import confluent_kafka
import numpy as np
import numpy.typing as npt
from confluent_kafka import KafkaError, cimpl

from eosingest.kafka.columns import BinaryColumn
from eosingest.kafka.ports import ANY_PARTITION

log = logging.getLogger("eosingest.librdkafka")

# rd_kafka_message_t of librdkafka 1.x and 2.x on 64 bits (rdkafka.h): 72 bytes.
_MESSAGE = np.dtype(
    {
        "names": ["err", "rkt", "partition", "payload", "len", "key", "key_len", "offset", "private"],
        "formats": ["<i4", "<u8", "<i4", "<u8", "<u8", "<u8", "<u8", "<i8", "<u8"],
        "offsets": [0, 8, 16, 24, 32, 40, 48, 56, 64],
        "itemsize": 72,
    }
)
_TESTED = (0x02000000, 0x03000000)  # librdkafka 2: its ABI is stable within a major version
_PRODUCER_BYTES = 176  # of confluent_kafka.Producer objects, 2.x; `rd_kafka_t *` follows the object's head
_COPY = 0x2  # RD_KAFKA_MSG_F_COPY
_EACH_ITS_PARTITION = 0x8  # RD_KAFKA_MSG_F_PARTITION: as the structures say


class BatchProducer:
    """Hands over columns of keys and values. Not thread-safe; `close` before the producer is deleted."""

    def __init__(self, library: Any, handle: int) -> None:
        """`library` is what ctypes loaded, `handle` an `rd_kafka_t *`."""
        self._library = library
        self._handle = handle
        self._topics: dict[str, int] = {}

    @classmethod
    def of(cls, producer: confluent_kafka.Producer) -> BatchProducer | None:
        """Return a batch producer for a producer, None if its memory layout is not as expected."""
        library = _library()
        if library is None:
            return None
        handle = ctypes.c_void_p.from_address(id(producer) + object.__basicsize__).value
        # confluent-kafka gives librdkafka the Python object as its opaque: that it comes back proves the pointer.
        if not handle or library.rd_kafka_opaque(handle) != id(producer):
            return None
        return cls(library, handle)

    @staticmethod
    def messages(
        keys: BinaryColumn, values: BinaryColumn, partitions: npt.NDArray[np.int32] | None = None
    ) -> npt.NDArray[np.void]:
        """Return the C structures for records; they point into the columns, which must live until they are handed over."""
        made = np.zeros(len(values), _MESSAGE)
        made["partition"] = ANY_PARTITION if partitions is None else partitions
        made["key"], made["key_len"] = keys.addresses, keys.lengths
        made["payload"], made["len"] = values.addresses, values.lengths
        return made

    def produce(
        self, topic: str, messages: npt.NDArray[np.void], partition: int | None = None
    ) -> tuple[int, KafkaError | None]:
        """Hand over messages in their order; return the number taken before the first refused one, and its error (None: all).

        All of them go to `partition`, or if it is None each to its own, which takes longer. If the queue is full
        (`_QUEUE_FULL`), librdkafka takes no message after the first that it has no room for.
        """
        how = (ANY_PARTITION, _COPY | _EACH_ITS_PARTITION) if partition is None else (partition, _COPY)
        taken = int(self._library.rd_kafka_produce_batch(self._topic(topic), *how, messages.ctypes.data, len(messages)))
        if taken == len(messages):
            return taken, None
        first = int(np.flatnonzero(messages["err"])[0])
        return first, KafkaError(int(messages["err"][first]))

    def _topic(self, name: str) -> int:
        if name not in self._topics:
            made = self._library.rd_kafka_topic_new(self._handle, name.encode(), None)
            if not made:
                raise ValueError(f"librdkafka does not accept the topic name {name!r}")
            self._topics[name] = made
        return self._topics[name]

    def close(self) -> None:
        """Destroy the topic handles: librdkafka keeps a producer alive as long as one exists."""
        for made in self._topics.values():
            self._library.rd_kafka_topic_destroy(made)
        self._topics.clear()


def _library() -> Any:
    """Load librdkafka's C functions, None where they are not the ones that this module knows."""
    version = confluent_kafka.libversion()[1]
    size = confluent_kafka.Producer.__basicsize__
    if not _TESTED[0] <= version < _TESTED[1] or size != _PRODUCER_BYTES or ctypes.sizeof(ctypes.c_void_p) != 8:
        log.info("librdkafka %#x, Producer of %d bytes: records are handed over one by one", version, size)
        return None
    try:
        library: Any = ctypes.CDLL(cimpl.__file__)
        library.rd_kafka_opaque.restype = ctypes.c_void_p
        library.rd_kafka_opaque.argtypes = [ctypes.c_void_p]
        library.rd_kafka_topic_new.restype = ctypes.c_void_p
        library.rd_kafka_topic_new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        library.rd_kafka_topic_destroy.restype = None
        library.rd_kafka_topic_destroy.argtypes = [ctypes.c_void_p]
        library.rd_kafka_produce_batch.restype = ctypes.c_int
        library.rd_kafka_produce_batch.argtypes = [
            ctypes.c_void_p,
            ctypes.c_int32,
            ctypes.c_int,
            ctypes.c_void_p,
            ctypes.c_int,
        ]
    except (OSError, AttributeError) as error:
        log.info("librdkafka's functions cannot be reached (%s): records are handed over one by one", error)
        return None
    return library
