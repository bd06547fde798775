"""URLs of Spark: `spark+local://2`, `spark+local-cluster://2,1,2048`, `spark://host:7077`, `sc://host:15002`.

What follows a `?`, but for Connect, are settings of Spark: `spark+local://2?spark.sql.catalogImplementation=hive`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from sqlanon.engines.dialects import CAPABLE, Capability
from sqlanon.errors import PolicyError

_ELSEWHERE = Capability(
    "Spark writes files where its executors are, and only tools of that place let a directory take another one's place"
    " in one step; name a table for the release, or run Spark on this machine (spark+local://)."
)
_CORES = re.compile(r"[1-9]\d{0,3}|\*", re.ASCII)
_WORKERS = re.compile(r"\d{1,4},\d{1,4},\d{1,7}", re.ASCII)


@dataclass(frozen=True)
class SparkAddress:
    """The master of a classic session with its settings, or else the URL of a Connect server."""

    master: str | None = None
    settings: Mapping[str, str] | None = None
    remote: str | None = None

    @property
    def is_local(self) -> bool:
        """Tell whether Spark is at work on this machine alone."""
        return self.master is not None and self.master.startswith("local")

    @property
    def writes_here(self) -> Capability:
        """Capability of its sessions to write files of this machine."""
        return CAPABLE if self.is_local else _ELSEWHERE


def address_of(url: str) -> SparkAddress:
    """Read a URL; raises PolicyError, with the form that it should have, for one that names no session."""
    scheme, _, rest = url.partition("://")
    place, _, query = rest.partition("?")
    if scheme == "sc":
        if not place.partition(";")[0].strip("/"):
            raise PolicyError("Write sc://host:15002, the host and the port of a Spark Connect server.")
        return SparkAddress(remote=url)
    settings = dict(parse_qsl(query, keep_blank_values=True))
    if wrong := next((name for name in settings if not name.startswith("spark.")), None):
        raise PolicyError(f"'{wrong}' is no setting of Spark: in its URL, names of settings begin with `spark.`.")
    place = place.rstrip("/")
    if scheme == "spark":
        if not place:
            raise PolicyError("Write spark://host:7077, the URL of the master.")
        return SparkAddress(f"spark://{place}", settings)
    if scheme == "spark+local":
        if not _CORES.fullmatch(place or "*"):
            raise PolicyError("Write spark+local://2, with the number of cores, or spark+local:// for all.")
        return SparkAddress(f"local[{place or '*'}]", settings)
    if not _WORKERS.fullmatch(place):
        raise PolicyError("Write spark+local-cluster://2,1,2048: executors, cores of each, megabytes of each.")
    return SparkAddress(f"local-cluster[{place}]", settings)
