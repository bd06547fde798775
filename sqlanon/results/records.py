"""Results as the catalog keeps them: JSON with the version of its form."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from sqlanon.errors import SqlanonError
from sqlanon.methods.differential_privacy.result import PrivateResult
from sqlanon.methods.randomization.result import RandomizedResult
from sqlanon.methods.rule_hiding.result import HidingResult
from sqlanon.results.codec import from_json
from sqlanon.results.facts import AlgorithmResult, facts_of
from sqlanon.results.run_result import RunResult
from sqlanon.results.upcasters import VERSION, upcast

_Result = TypeVar("_Result", PrivateResult, RandomizedResult, HidingResult)
_KEYS: dict[type[Any], str] = {PrivateResult: "private", RandomizedResult: "randomized", HidingResult: "hiding"}
AnyResult = RunResult | PrivateResult | RandomizedResult | HidingResult


def write_record(result: AnyResult) -> str:
    """The text that the catalog keeps: what `--json` prints, with the version; of classes, the kind of facts too."""
    plain = result.as_json()
    if isinstance(result, RunResult):
        algorithm = {**plain["algorithm"], "kind": result.algorithm.facts.kind}
        return json.dumps({"version": VERSION, **plain, "algorithm": algorithm}, ensure_ascii=False)
    return json.dumps({"version": VERSION, _KEYS[type(result)]: plain}, ensure_ascii=False)


def read_record(text: str) -> RunResult:
    """Read what this version or an earlier one wrote; raises SqlanonError where the text is damaged."""
    try:
        record = upcast(json.loads(text))
        return from_json(RunResult, {**record, "algorithm": _algorithm(record["algorithm"])})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SqlanonError("The recorded result of the run is damaged.") from error


def read_part(text: str, kind: type[_Result]) -> _Result | None:
    """Read the record of a run without classes; None where it is of another kind of runs.

    Raises SqlanonError where the text is damaged, or of a later version.
    """
    key = _KEYS[kind]
    try:
        data = json.loads(text)
        if key not in data:
            return None
        if data["version"] > VERSION:
            raise SqlanonError("The result of the run was recorded by a later sqlanon: use that one.")
        return from_json(kind, data[key])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SqlanonError("The recorded result of the run is damaged.") from error


def _algorithm(data: dict[str, Any]) -> AlgorithmResult:
    """The algorithm with facts of their kind."""
    own = {name: data[name] for name in ("name", "rounds", "statements")}
    facts = {name: value for name, value in data.items() if name not in (*own, "kind")}
    return AlgorithmResult(**own, facts=facts_of(data["kind"], facts))
