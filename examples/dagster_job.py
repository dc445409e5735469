"""A Dagster asset, one partition a day: orders in Kafka, loaded exactly once and audited, with the reports as its metadata.

A retry goes on where the last attempt ended: what is committed is not sent again. Try it, with ORDERS_BROKERS set:

    dagster dev -f examples/dagster_job.py
"""

from pathlib import Path

from dagster import (
    AssetExecutionContext,
    DailyPartitionsDefinition,
    Definitions,
    Failure,
    MaterializeResult,
    RetryRequested,
    asset,
)

import eosingest

SPEC = Path(__file__).with_name("orders.toml")
# Exit codes 3, 5 and 11: running again finishes the job.
RETRY_HELPS = (eosingest.IncompleteError, eosingest.TemporaryError, eosingest.ActiveRunError)


@asset(partitions_def=DailyPartitionsDefinition(start_date="2026-11-20"))
def orders(context: AssetExecutionContext) -> MaterializeResult:
    """The orders of a day, in the topic `orders`."""
    spec = eosingest.Spec.load(SPEC, params={"date": context.partition_key})
    try:
        report = eosingest.run(spec, if_running="fence", on_note=context.log.info)
        audit = eosingest.verify(spec, against_source=True)
    except RETRY_HELPS as error:
        raise RetryRequested(max_retries=5, seconds_to_wait=60) from error
    except eosingest.EosingestError as error:
        metadata = {"code": error.code, "hint": error.hint, "exit_code": error.exit_code}
        raise Failure(error.message, metadata=metadata, allow_retries=False) from error
    return MaterializeResult(
        metadata={
            "records_sent": report.records_sent,
            "records_total": report.records_total,
            "seconds": report.seconds,
            "topic": report.topic,
            "verdict": audit.verdict,
            "checksum": audit.found["checksum"],
        }
    )


defs = Definitions(assets=[orders])
