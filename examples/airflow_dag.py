"""A DAG for Airflow 3 that loads a day of orders into Kafka, exactly once, and then audits the topic.

A retry goes on where the last attempt ended: what is committed is not sent again. So a task may be retried, cleared or killed
at any time. Put it into the DAG folder with orders.toml beside it, and set ORDERS_BROKERS for the workers.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import dag, task
from airflow.sdk.exceptions import AirflowFailException

import eosingest

SPEC = Path(__file__).with_name("orders.toml")
# Exit codes 3, 5 and 11: running again finishes the job. Airflow retries on these; on any other error the task fails at once.
RETRY_HELPS = (eosingest.IncompleteError, eosingest.TemporaryError, eosingest.ActiveRunError)


def load_day(day: str) -> dict[str, Any]:
    """Send what is left of the day (2026-11-20). The report goes to XCom."""
    spec = eosingest.Spec.load(SPEC, params={"date": day})
    try:
        # Two attempts of one task on different hosts: the newer one fences the older.
        report = eosingest.run(spec, if_running="fence", on_note=print, on_progress=print)
    except RETRY_HELPS:
        raise
    except eosingest.EosingestError as error:
        raise AirflowFailException(f"{error.code}: {error.message} ({error.hint})") from error
    return report.to_json()


def verify_day(day: str) -> dict[str, Any]:
    """Compare the topic with what was sent, and with the files."""
    spec = eosingest.Spec.load(SPEC, params={"date": day})
    try:
        return eosingest.verify(spec, against_source=True, on_progress=print).to_json()
    except eosingest.TemporaryError:
        raise
    except eosingest.EosingestError as error:
        raise AirflowFailException(f"{error.code}: {error.message} ({error.hint})") from error


@dag(
    schedule="@daily",
    start_date=datetime(2026, 11, 20),
    catchup=False,
    default_args={"retries": 5, "retry_delay": timedelta(minutes=1), "retry_exponential_backoff": True},
)
def load_orders() -> None:
    """Load the day of the DAG run, then audit it."""
    day = "{{ ds }}"
    task(load_day)(day) >> task(verify_day)(day)


load_orders()
