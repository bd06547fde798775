"""Releases of many policies, digested: a change of the code's structure must leave every one of them as it was.

python benchmarks/frozen_releases.py --write frozen.json      before the change
python benchmarks/frozen_releases.py --compare frozen.json    after it: lists what differs; exit code 1 if anything does
python benchmarks/frozen_releases.py --compare frozen.json --only mondrian --engine duckdb --large

Every algorithm, privacy model, kind of hierarchy, `show`, treatment of suppressed rows, on a made-up table of 1,200
patients (a million rows of the Rothko evaluation with --large), on DuckDB and on a PostgreSQL server that is started
here. Compared are: the columns of the release, its rows in the order in which they are stored, what `run --json` prints
but for times and names of runs, and the number of statements of each phase.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import frozen_mechanisms
from agrawal import QUASI_IDENTIFIERS, Wanted, create_statement

from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import SqlanonError
from sqlanon.results.codec import to_json
from tests.postgres_server import find_binaries, start
from tests.run_support import OPTIONS, Database, Row, open_database, run

COLUMNS = {
    "ssn": "VARCHAR(11)",
    "age": "INTEGER",
    "zipcode": "VARCHAR(5)",
    "job": "VARCHAR(20)",
    "admitted": "DATE",
    "income": "DOUBLE PRECISION",
    "cost": "DECIMAL(9,2)",
    'Ward "A"': "VARCHAR(10)",
    "disease": "VARCHAR(20)",
    "days": "INTEGER",
}
JOBS = {
    "nurse": ["health", "*"],
    "doctor": ["health", "*"],
    "clerk": ["office", "*"],
    "sales": ["office", "*"],
    "smith": ["craft", "*"],
    "baker": ["craft", "*"],
}
DISEASES = {
    "flu": ["airway", "*"],
    "asthma": ["airway", "*"],
    "burn": ["skin", "*"],
    "rash": ["skin", "*"],
    "ulcer": ["stomach", "*"],
}
QUASI = {"role": "quasi-identifier"}
K5 = {"model": "k-anonymity", "k": 5}
LEVELED: dict[str, Any] = {
    "age": QUASI | {"hierarchy": {"intervals": [5, 10, 20, 40]}},
    "zipcode": QUASI | {"hierarchy": {"mask": "right"}},
    "job": QUASI | {"hierarchy": {"mapping": JOBS}},
    "admitted": QUASI | {"hierarchy": {"date": ["month", "quarter", "year"]}},
}
PLAIN: dict[str, Any] = dict.fromkeys(("age", "zipcode", "job", "admitted"), QUASI)


def patients(rows: int = 1200) -> list[Row]:
    """Rows that depend on their number alone, with NULLs, ties, an outlier and a skewed sensitive value."""

    def draw(row: int, column: str, size: int) -> int:
        return int.from_bytes(hashlib.md5(f"{row} {column}".encode()).digest()[:4]) % size

    def unless_null(row: int, column: str, value: Any) -> Any:
        return None if draw(row, column + "?", 40) == 0 else value

    jobs, diseases = list(JOBS), list(DISEASES)
    return [
        (
            f"{row:011d}",
            unless_null(row, "age", 18 + draw(row, "age", 30) + draw(row, "age2", 40)),
            f"{13000 + draw(row, 'zipcode', 30) * 7:05d}",
            unless_null(row, "job", jobs[draw(row, "job", len(jobs))]),
            f"2024-{1 + draw(row, 'month', 12):02d}-{1 + draw(row, 'day', 28):02d}",
            unless_null(row, "income", draw(row, "income", 900) * 100.5),
            f"{draw(row, 'cost', 20000) / 100:.2f}" if row else "999999.99",
            "WXYZ"[draw(row, "ward", 4)],
            unless_null(row, "disease", diseases[min(draw(row, "disease", 5), draw(row, "disease2", 5))]),
            draw(row, "days", 60),
        )
        for row in range(rows)
    ]


def policy_of(quasi: Mapping[str, Any], *models: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A policy without its places: these quasi-identifiers, k = 5 and more models."""
    attributes: dict[str, Any] = {name: {"role": "insensitive"} for name in COLUMNS}
    attributes |= {"ssn": {"role": "identifier"}, "disease": {"role": "sensitive"}, "days": {"role": "sensitive"}}
    attributes |= dict(quasi)
    for model in models:
        if model.get("distance") == "hierarchical":
            attributes["disease"] = {"role": "sensitive", "hierarchy": {"mapping": DISEASES}}
    return {"attributes": attributes, "privacy": [K5, *models], **more}


MODELS: dict[str, dict[str, Any]] = {
    "distinct-l": {"model": "distinct-l-diversity", "attribute": "disease", "l": 3},
    "entropy-l": {"model": "entropy-l-diversity", "attribute": "disease", "l": 2.2},
    "recursive-l": {"model": "recursive-l-diversity", "attribute": "disease", "c": 3, "l": 2},
    "t-equal": {"model": "t-closeness", "attribute": "disease", "t": 0.3},
    "t-ordered": {"model": "t-closeness", "attribute": "days", "distance": "ordered", "t": 0.2},
    "t-hierarchical": {"model": "t-closeness", "attribute": "disease", "distance": "hierarchical", "t": 0.25},
    "t-kl": {"model": "t-closeness", "attribute": "disease", "distance": "kl", "t": 0.5},
    "variance": {"model": "variance-diversity", "attribute": "days", "v": 150},
}
TABLE_MODELS = [
    {"model": "average-risk", "risk": 0.3},
    {"model": "population-uniqueness", "share": 0.02, "sample_of": 0.25, "estimator": "zayatz"},
]
SAMPLED = {"name": "rothko-s", "sample": 300, "exact_below": 100}
GAIN = {"split": "information-gain", "target": "disease"}
REGRESSION = {"split": "regression", "target": "days"}
TREES: dict[str, dict[str, Any]] = {
    "mondrian": {"name": "mondrian"},
    "gain": {"name": "rothko-t"} | GAIN,
    "gain-bins": {"name": "rothko-t", "bins": 8, "least_gain": 0.02} | GAIN,
    "regression": {"name": "rothko-t"} | REGRESSION,
    "sampled": SAMPLED,
    "sampled-gain": SAMPLED | GAIN,
    "sampled-regression": SAMPLED | REGRESSION,
}
LATTICES: dict[str, dict[str, Any]] = {
    "incognito": {"name": "incognito"},
    "incognito, super-roots": {"name": "incognito", "variant": "super-roots"},
    "incognito, cube": {"name": "incognito", "variant": "cube", "quality": "height"},
    "samarati": {"name": "samarati", "quality": "precision"},
    "bottom-up": {"name": "bottom-up", "quality": "discernibility"},
    "bottom-up, no rollup": {"name": "bottom-up", "rollup": False, "quality": "aecs"},
    "datafly": {"name": "datafly"},
    "optimal": {"name": "optimal"},
    "optimal, arithmetic": {"name": "optimal", "aggregate": "arithmetic", "weights": {"age": 3}},
    "optimal, entropy": {"name": "optimal", "quality": "entropy"},
    "optimal, entropy-arx": {"name": "optimal", "quality": "entropy-arx"},
    "optimal, kl": {"name": "optimal", "quality": "kl-divergence"},
    "optimal, limits": {"name": "optimal", "limits": {"zipcode": [1, 4]}},
    "attribute suppression": {"name": "optimal", "recoding": "attribute-suppression"},
    "top-down": {"name": "top-down"},
    "top-down, gain": {"name": "top-down", "quality": "information-gain", "target": "disease"},
}


def cases() -> dict[str, dict[str, Any]]:
    """All policies by name."""
    found: dict[str, dict[str, Any]] = {}
    for name, algorithm in TREES.items():
        found[name] = policy_of(PLAIN, algorithm=algorithm)
        found[f"{name}, hierarchies"] = policy_of(LEVELED, algorithm=algorithm)
    for name, model in MODELS.items():
        found[f"mondrian, {name}"] = policy_of(PLAIN, model)
        found[f"optimal, {name}, star"] = policy_of(
            LEVELED, model, algorithm={"name": "optimal"}, suppression=0.1, suppressed="star"
        )
    found["sampled, recursive-l"] = policy_of(PLAIN, MODELS["recursive-l"], algorithm=SAMPLED)
    found["gain, t-equal"] = policy_of(PLAIN, MODELS["t-equal"], algorithm=TREES["gain"])
    for name, algorithm in LATTICES.items():
        suppression = {} if algorithm["name"] == "top-down" else {"suppression": 0.05}
        found[name] = policy_of(LEVELED, algorithm=algorithm, **suppression)
    found["optimal, whole release"] = policy_of(LEVELED, algorithm={"name": "optimal"}, suppression=0.02) | {
        "privacy": TABLE_MODELS
    }
    optimal = {"algorithm": {"name": "optimal"}, "suppression": 0.2}
    found["optimal, recode"] = policy_of(LEVELED, remainder="recode", **optimal)
    found["optimal, star unprotected"] = policy_of(LEVELED, suppressed={"star": "unprotected"}, **optimal)
    numbers = {"age": QUASI, "income": QUASI, "cost": QUASI, "admitted": QUASI}
    for show in ("bounds", "mean", "midpoint"):
        shown = {name: QUASI | {"show": show} for name in ("age", "income", "cost")}
        found[f"show {show}"] = policy_of(shown)
        found[f"show {show}, cuts"] = policy_of(shown, ranges="cuts")
        found[f"show {show}, known"] = policy_of({name: one | {"nulls": "allow"} for name, one in shown.items()})
    found["numbers"] = policy_of(numbers)
    found["numbers, cuts"] = policy_of(numbers, ranges="cuts")
    found["limits"] = policy_of(numbers | {"cost": QUASI | {"top": {"quantile": 0.99}}, "age": QUASI | {"bottom": 25}})
    found["sets by range"] = policy_of({"zipcode": QUASI | {"sets": "range"}, "job": QUASI | {"sets": "auto"}})
    found["sets"] = policy_of({"zipcode": QUASI, "job": QUASI, 'Ward "A"': QUASI})
    found["suppressed column"] = policy_of(LEVELED | {"zipcode": QUASI | {"hierarchy": "suppress"}})
    found["decimals in bands"] = policy_of({"cost": QUASI | {"hierarchy": {"intervals": [2.5, 10, 50]}}, "age": QUASI})
    found["one row each"] = policy_of(PLAIN) | {"privacy": [{"model": "k-anonymity", "k": 1}]}
    found["all in one"] = policy_of(PLAIN) | {"privacy": [{"model": "k-anonymity", "k": 700}]}
    found["unmet"] = policy_of(PLAIN, {"model": "distinct-l-diversity", "attribute": "disease", "l": 6})
    return found


def large_cases() -> dict[str, dict[str, Any]]:
    """Policies for a million rows of the Rothko evaluation."""
    attributes: dict[str, Any] = dict.fromkeys(QUASI_IDENTIFIERS, QUASI)
    attributes |= {"person": {"role": "identifier"}, "cls": {"role": "sensitive"}}
    attributes |= {name: {"role": "sensitive"} for name in ("c2", "c7", "c10", "r7", "r10", "r7_fifth")}
    privacy = [{"model": "k-anonymity", "k": 100}]
    gain = {"split": "information-gain", "target": "c2"}
    return {
        f"1M, {name}": {"attributes": attributes, "privacy": privacy, "algorithm": algorithm}
        for name, algorithm in {
            "mondrian": {"name": "mondrian"},
            "gain": {"name": "rothko-t"} | gain,
            "sampled": {"name": "rothko-s", "sample": 50000},
        }.items()
    }


def frozen(database: Database, table: str, case: Mapping[str, Any], options: EngineOptions) -> dict[str, Any]:
    """Run a policy over a table, and return the parts to compare: the release, the outcome, the statements."""
    policy = database.policy(table, **case)
    return digested(database, table, lambda: run(policy, replace=True, options=options))


def digested(database: Database, table: str, carry_out: Callable[[], Any]) -> dict[str, Any]:
    """Carry out a run over a table, and return the parts to compare."""
    try:
        outcome = carry_out()
    except SqlanonError as error:
        return {"error": f"{type(error).__name__}: {error}".replace(table, "TABLE")}
    release = f"{table}_r"
    columns = database.columns(release)
    digest = hashlib.sha256()
    for row in database.sql(f"SELECT * FROM {release}"):
        digest.update(repr([str(value) if value is not None else None for value in row]).encode())
    steps = database.sql(f"SELECT phase, count(*) FROM sqlanon.steps WHERE run = '{outcome.run}' GROUP BY phase")
    return {
        "columns": [list(column) for column in columns],
        "rows": digest.hexdigest(),
        "result": _lasting(to_json(outcome)),
        "statements": dict(sorted((phase, count) for phase, count in steps)),
    }


def _lasting(result: dict[str, Any]) -> dict[str, Any]:
    """The outcome without what is another one in every run: its name, its times, its places."""
    kept = {key: value for key, value in result.items() if key not in ("run", "seconds", "catalog")}
    text = re.sub(r"\b\d{6}-\d{6}-[0-9a-f]{8}\b", "RUN", json.dumps(kept, sort_keys=True, default=str))
    return json.loads(text)  # type: ignore[no-any-return]


@contextlib.contextmanager
def databases(engines: list[str]) -> Iterator[dict[str, Database]]:
    """An empty database of each engine."""
    with contextlib.ExitStack() as stack:
        opened: dict[str, Database] = {}
        if "duckdb" in engines:
            path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "frozen.duckdb"
            opened["duckdb"] = stack.enter_context(open_database(f"duckdb:///{path}"))
        if "postgres" in engines:
            binaries = find_binaries()
            if binaries is None:
                raise SystemExit("No PostgreSQL server programs were found; go on with --engine duckdb.")
            server = stack.enter_context(start(binaries))
            server.create("frozen")
            opened["postgres"] = stack.enter_context(open_database(server.url("frozen")))
        yield opened


def freeze(engines: list[str], only: str, large: bool) -> dict[str, dict[str, Any]]:
    """Run all policies whose names hold `only`, on each engine."""
    found: dict[str, dict[str, Any]] = {}
    with databases(engines) as opened:
        for engine, database in opened.items():
            table = database.create(COLUMNS, patients(), "patients")
            for name, case in cases().items():
                if only in name:
                    found[f"{engine}: {name}"] = frozen(database, table, case, OPTIONS)
            with frozen_mechanisms.known_keys():
                for name, makes in frozen_mechanisms.cases().items():
                    if only in name:
                        carried = functools.partial(makes, database, table)
                        found[f"{engine}: {name}"] = digested(database, table, carried)
            if large:
                database.sql(create_statement(engine, "million", Wanted(1_000_000, targets=True)))
                for name, case in large_cases().items():
                    if only in name:
                        found[f"{engine}: {name}"] = frozen(database, "million", case, EngineOptions())
    return found


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """A line for each policy that is not what it was, with the parts that differ."""
    lines = []
    for name, now in after.items():
        then = before.get(name)
        if then is None:
            lines.append(f"{name}: new")
        elif then != now:
            parts = [key for key in sorted({*then, *now}) if then.get(key) != now.get(key)]
            fields = _paths(then.get("result"), now.get("result"))
            lines.append(f"{name}: {', '.join(parts)}" + (f" ({', '.join(fields[:8])})" if fields else ""))
    return lines


def _paths(then: Any, now: Any, path: str = "") -> list[str]:
    """The paths at which two JSON values differ."""
    if isinstance(then, dict) and isinstance(now, dict):
        return [one for key in sorted({*then, *now}) for one in _paths(then.get(key), now.get(key), f"{path}.{key}")]
    return [] if then == now else [path.removeprefix(".") or "all"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--compare", type=Path)
    parser.add_argument("--only", default="", help="policies whose names hold this")
    parser.add_argument("--engine", choices=("duckdb", "postgres"), action="append")
    parser.add_argument("--large", action="store_true", help="a million rows too")
    arguments = parser.parse_args()
    found = freeze(arguments.engine or ["duckdb", "postgres"], arguments.only, arguments.large)
    print(f"{len(found)} runs, {sum('error' in one for one in found.values())} of them without a release")
    if arguments.write is not None:
        arguments.write.write_text(json.dumps(found, indent=1, sort_keys=True))
    if arguments.compare is not None:
        lines = differences(json.loads(arguments.compare.read_text()), found)
        print("\n".join(lines) or "all as before")
        raise SystemExit(1 if lines else 0)


if __name__ == "__main__":
    main()
