"""Results as the catalog keeps them: JSON with the version of its form.

A record that an earlier version wrote is brought to this one by a function for each step, which takes the plain data of
a version and gives that of the next. A key that the earlier version did not write stays away, and the typed value says
None: nothing is invented.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from sqlanon.errors import PolicyError, SqlanonError
from sqlanon.results.codec import from_json
from sqlanon.results.method_result import MethodResult
from sqlanon.results.run_result import RunResult
from sqlanon.results.search_facts import AlgorithmResult, facts_of, kind_of
from sqlanon.support.methods import Method, added_methods, method_of, own_methods

AnyResult = RunResult | MethodResult
VERSION = 2  # of the records that this program writes


def write_record(result: AnyResult) -> str:
    """The text that the catalog keeps: what `--json` prints, with the version; of classes, the kind of facts too."""
    plain = result.as_json()
    if isinstance(result, RunResult):
        algorithm = {**plain["algorithm"], "kind": result.algorithm.facts.kind}
        return json.dumps({"version": VERSION, **plain, "algorithm": algorithm}, ensure_ascii=False)
    method = method_of(result.algorithm)
    if method is None or method.key is None:
        raise SqlanonError(f"No installed method has the algorithm '{result.algorithm}', so its run can't be recorded.")
    return json.dumps({"version": VERSION, method.key: plain}, ensure_ascii=False)


def read_record(text: str) -> AnyResult:
    """Read what this version or an earlier one wrote: a result of classes, or of a method whose releases show none.

    Raises SqlanonError where the text is damaged, of a later version, or of a method that is not installed.
    """
    try:
        data = json.loads(text)
        keys = data.keys() - {"version"}
        if len(keys) != 1:  # a record of classes has all of its fields there
            record = upcast(data)
            return from_json(RunResult, {**record, "algorithm": _algorithm(record["algorithm"])})
        (key,) = keys
        method = _method_with(key)
        if method is None or method.result is None:
            raise SqlanonError(f"The result of the run is one of a method that is not installed ('{key}').")
        if data["version"] > VERSION:
            raise SqlanonError("The result of the run was recorded by a later sqlanon: use that one.")
        result: MethodResult = from_json(method.load(method.result), data[key])
        return result
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SqlanonError("The recorded result of the run is damaged.") from error


def _algorithm(data: dict[str, Any]) -> AlgorithmResult:
    """The algorithm with facts of their kind."""
    own = {name: data[name] for name in ("name", "rounds", "statements")}
    facts = {name: value for name, value in data.items() if name not in (*own, "kind")}
    return AlgorithmResult(**own, facts=facts_of(data["kind"], facts))


def _method_with(key: str) -> Method | None:
    """Find the method whose records have a key: an own one, or one of the packages, which are loaded for it.

    Raises PolicyError where none has it, and a package can't be loaded, whose method may have it.
    """
    own = next((method for method in own_methods() if method.key == key), None)
    if own is not None:
        return own
    errors: list[PolicyError] = []
    added = next((method for method in added_methods(errors.append) if method.key == key), None)
    if added is None and errors:
        raise errors[0]
    return added


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
    return {**record, "version": 2, "algorithm": {**algorithm, "kind": kind_of(algorithm)}}


STEPS: tuple[Callable[[dict[str, Any]], dict[str, Any]], ...] = (name_kind_of_facts,)
