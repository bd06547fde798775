"""Results as the catalog keeps them: JSON with the version of its form."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from sqlanon.errors import SqlanonError
from sqlanon.results.codec import from_json
from sqlanon.results.facts import AlgorithmResult, facts_of
from sqlanon.results.hiding import HidingResult
from sqlanon.results.private import PrivateResult
from sqlanon.results.randomized import RandomizedResult
from sqlanon.results.run_result import RunResult
from sqlanon.results.upcasters import VERSION, upcast

_Result = TypeVar("_Result", PrivateResult, RandomizedResult, HidingResult)
AnyResult = RunResult | PrivateResult | RandomizedResult | HidingResult


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


def write_private_record(result: PrivateResult) -> str:
    """The text that the catalog keeps of a differentially private run."""
    return json.dumps({"version": VERSION, "private": result.as_json()}, ensure_ascii=False)


def read_private_record(text: str) -> PrivateResult | None:
    """Read the record of a differentially private run; None where it is of another run.

    Raises SqlanonError where the text is damaged, or of a later version.
    """
    return _read_part(text, "private", PrivateResult)


def write_randomized_record(result: RandomizedResult) -> str:
    """The text that the catalog keeps of a run that changed values at random."""
    return json.dumps({"version": VERSION, "randomized": result.as_json()}, ensure_ascii=False)


def read_randomized_record(text: str) -> RandomizedResult | None:
    """Read the record of a run that changed values at random; None where it is of another run.

    Raises SqlanonError where the text is damaged, or of a later version.
    """
    return _read_part(text, "randomized", RandomizedResult)


def write_hiding_record(result: HidingResult) -> str:
    """The text that the catalog keeps of a run that hid association rules."""
    return json.dumps({"version": VERSION, "hiding": result.as_json()}, ensure_ascii=False)


def read_hiding_record(text: str) -> HidingResult | None:
    """Read the record of a run that hid association rules; None where it is of another run.

    Raises SqlanonError where the text is damaged, or of a later version.
    """
    return _read_part(text, "hiding", HidingResult)


def _read_part(text: str, key: str, kind: type[_Result]) -> _Result | None:
    """Read the record of a kind of runs that is kept under a key; None where there is no such key."""
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
