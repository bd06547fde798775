"""Records of results that earlier versions wrote, as the next version would have written them.

One function for each step takes the plain data of a version and gives that of the next. A key that the earlier version
did not write stays away, and the typed value says None: nothing is invented.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlanon.errors import SqlanonError

VERSION = 2  # of the records that this program writes
_MARKS = {"applied": "applied", "samplings": "sampled-tree", "levels": "lattice", "specializations": "top-down"}


def upcast(record: dict[str, Any]) -> dict[str, Any]:
    """Bring a record to `VERSION`; one without a number is of version 1.

    Raises SqlanonError for a record of a later version.
    """
    version = record.get("version", 1)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise SqlanonError("The recorded result of the run is damaged: its version is no number of one.")
    if version > VERSION:
        raise SqlanonError(
            f"The result of run {record.get('run')} was recorded by a later sqlanon (version {version} of records, and"
            f" this one reads up to {VERSION}): use that one."
        )
    for step in STEPS[version - 1 :]:
        record = step(record)
    return record


def name_kind_of_facts(record: dict[str, Any]) -> dict[str, Any]:
    """From 1 to 2: the facts of the algorithm name their kind, which the keys told that only they had."""
    algorithm = record["algorithm"]
    kind = next((kind for key, kind in _MARKS.items() if key in algorithm), "tree")
    return {**record, "version": 2, "algorithm": {**algorithm, "kind": kind}}


STEPS: tuple[Callable[[dict[str, Any]], dict[str, Any]], ...] = (name_kind_of_facts,)
