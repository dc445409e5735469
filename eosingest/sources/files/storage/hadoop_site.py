"""Finds a name node's web address in the site's configuration of Hadoop: `hdfs-site.xml` in `HADOOP_CONF_DIR`.

Hadoop's clients, also Spark's, read the same file, so a name service of several name nodes needs nothing in a spec.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from eosingest.errors import SpecError

_PORTS = {"http": 9870, "https": 9871}  # Hadoop's defaults for a name node's web address
_REFERENCE = re.compile(r"\$\{([^}$]+)\}")
_DEPTH = 20  # of nested references, as in Hadoop


def endpoints_of(authority: str, environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Return the web addresses of the name nodes of `hdfs://authority`, as URLs.

    If no configuration names them, this is the authority's host, at Hadoop's default port. Raises SpecError for a
    configuration that cannot be read, or is no XML.
    """
    site = _site(environment)
    scheme = "https" if site.get("dfs.http.policy") == "HTTPS_ONLY" else "http"
    key = f"dfs.namenode.{scheme}-address"
    host = authority.partition(":")[0]
    nodes = [name.strip() for name in site.get(f"dfs.ha.namenodes.{authority}", "").split(",") if name.strip()]
    named = [site.get(f"{key}.{authority}.{node}", "") for node in nodes] or [site.get(f"{key}.{authority}", "")]
    if not any(named) and _is_default(authority, site):
        named = [site.get(key, "")]
    found = tuple(f"{scheme}://{_at_host(address, host)}" for address in named if address)
    return found or (f"{scheme}://{host}:{_PORTS[scheme]}",)


def _site(environment: Mapping[str, str]) -> dict[str, str]:
    folder = environment.get("HADOOP_CONF_DIR")
    found: dict[str, str] = {}
    for name in ("core-site.xml", "hdfs-site.xml") if folder else ():
        path = Path(str(folder), name)
        try:
            properties = ElementTree.parse(path).getroot().iter("property")
        except FileNotFoundError:
            continue
        except (OSError, ElementTree.ParseError) as error:
            raise SpecError(
                f"{path}: {error}", code="hadoop-conf", hint="correct it, or unset HADOOP_CONF_DIR for this run"
            ) from error
        found |= {(each.findtext("name") or "").strip(): (each.findtext("value") or "").strip() for each in properties}
    return {name: _resolved(text, found, environment) for name, text in found.items()}


def _resolved(text: str, site: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """Return a value with its references `${name}` and `${env.NAME}` resolved; an unknown one stays as it is."""

    def value(found: re.Match[str]) -> str:
        name = found[1]
        return (environment.get(name[4:]) if name.startswith("env.") else site.get(name)) or found[0]

    for _ in range(_DEPTH):
        before, text = text, _REFERENCE.sub(value, text)
        if text == before:
            break
    return text


def _is_default(authority: str, site: Mapping[str, str]) -> bool:
    """Say whether an address without a name is that of this name node: the default one of the site's clients."""
    return site.get("fs.defaultFS", site.get("fs.default.name", "")).rstrip("/") == f"hdfs://{authority}"


def _at_host(address: str, host: str) -> str:
    """Return an address; one that listens on all interfaces is reached at the host."""
    name, _, port = address.rpartition(":")
    return f"{host}:{port}" if name == "0.0.0.0" else address
