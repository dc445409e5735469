"""Validates Spark's master URLs, and adds task retries to local ones. Pure.

values.py checks the spec's key with it; spark/spark_defaults.py finds the master if the spec has none.
"""

from __future__ import annotations

import re

LOCAL_MASTER = re.compile(r"local(?:\[\s*(?P<cores>[1-9][0-9]*|\*)\s*(?:,\s*(?P<failures>[0-9]+)\s*)?\])?")
_LOCAL_CLUSTER = re.compile(r"local-cluster\[\s*(?P<executors>[1-9][0-9]*)\s*,\s*[1-9][0-9]*\s*,\s*[1-9][0-9]*\s*\]")
_ADDRESS = r"(?:\[[0-9A-Fa-f:.]+\]|[^\s/,:\[\]]+):[0-9]{1,5}"
_STANDALONE = re.compile(rf"spark://({_ADDRESS}(?:,{_ADDRESS})*)")
_KUBERNETES = re.compile(r"k8s://(?:https?://)?[^\s/,]\S*")
_KNOWN = "Spark knows local[*], spark://host:7077, yarn and k8s://https://host:port"
_FAILURES = 4


def master_problem(master: str) -> str | None:
    """Return why a run cannot be started with this master, or None."""
    if master.startswith("sc://"):
        return "Spark Connect is not supported; name a master such as local[*] or spark://host:7077"
    if master.startswith("mesos://"):
        return f"Spark 4 does not run on Mesos; {_KNOWN}"
    if any(not 0 < port < 65_536 for _, port in addresses(master)):
        return "a port is a number from 1 to 65535"
    if any(known.fullmatch(master) for known in (LOCAL_MASTER, _LOCAL_CLUSTER, _STANDALONE, _KUBERNETES)):
        return None
    if master == "yarn":
        return None
    if master.startswith("spark://"):
        return "not a master of a standalone cluster; write spark://host:7077"
    if master.startswith("local"):
        return "not a local master; write local[*] or local[2]"
    return f"not a master; {_KNOWN}"


def check_master(value: str) -> str:
    """Return the master. Raises ValueError if a run cannot be started with it."""
    problem = master_problem(value)
    if problem is not None:
        raise ValueError(problem)
    return value


def with_retries(master: str) -> str:
    """Return the master to start Spark with: a local one gets task retries, `local[N,4]`, as `local[N]` has none."""
    match = LOCAL_MASTER.fullmatch(master)
    if match is None:
        return master
    failures = int(match["failures"] or 0)
    return f"local[{match['cores'] or 1},{failures if failures >= 2 else _FAILURES}]"


def is_local(master: str) -> bool:
    """Say whether tasks run in the driver's own JVM."""
    return LOCAL_MASTER.fullmatch(master) is not None


def attempts_of_tasks(master: str) -> int | None:
    """Return how many attempts of a task a local master allows; None if it gives no number, or is not local."""
    match = LOCAL_MASTER.fullmatch(master)
    return int(match["failures"]) if match is not None and match["failures"] else None


def executors_of_local_cluster(master: str) -> int | None:
    """Return how many executors a `local-cluster` starts; None for other masters."""
    match = _LOCAL_CLUSTER.fullmatch(master)
    return int(match["executors"]) if match is not None else None


def on_other_machines(master: str) -> bool:
    """Say whether executors may run on other machines, where 127.0.0.1 is another host."""
    return not is_local(master) and executors_of_local_cluster(master) is None


def addresses(master: str) -> list[tuple[str, int]]:
    """Return (host, port) of the masters of a standalone cluster; empty for other masters."""
    match = _STANDALONE.fullmatch(master)
    if match is None:
        return []
    parts = (address.rpartition(":") for address in match[1].split(","))
    return [(host.strip("[]"), int(port)) for host, _, port in parts]


def embedded_problem(master: str, bootstrap_servers: str) -> str | None:
    """Return why executors cannot reach the spec's brokers, or None. The embedded broker listens on this host only."""
    if bootstrap_servers != "embedded" or not on_other_machines(master):
        return None
    return (
        f"the embedded broker listens on this machine alone, and the executors of {master} may run on others; name brokers"
        " that they reach, host:port (eosingest broker status has the embedded one's, for a cluster that is on this machine),"
        " or run with master local[*]"
    )
