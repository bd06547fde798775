"""Results as the catalog keeps them: JSON with the version of its form."""

from __future__ import annotations

import json
from typing import Any

from sqlanon.errors import SqlanonError
from sqlanon.results.codec import from_json
from sqlanon.results.facts import AlgorithmResult, facts_of
from sqlanon.results.run_result import RunResult
from sqlanon.results.upcasters import VERSION, upcast


def write_record(result: RunResult) -> str:
    """The text that the catalog keeps: what `--json` prints, with the version and the kind of facts."""
    plain = result.as_json()
    algorithm = {**plain["algorithm"], "kind": result.algorithm.facts.kind}
    return json.dumps({"version": VERSION, **plain, "algorithm": algorithm}, ensure_ascii=False)


def read_record(text: str) -> RunResult:
    """Read what this version or an earlier one wrote; raises SqlanonError where the text is damaged."""
    try:
        record = upcast(json.loads(text))
        return from_json(RunResult, {**record, "algorithm": _algorithm(record["algorithm"])})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SqlanonError("The recorded result of the run is damaged.") from error


def _algorithm(data: dict[str, Any]) -> AlgorithmResult:
    """The algorithm with facts of their kind."""
    own = {name: data[name] for name in ("name", "rounds", "statements")}
    facts = {name: value for name, value in data.items() if name not in (*own, "kind")}
    return AlgorithmResult(**own, facts=facts_of(data["kind"], facts))
