"""Reconstruction of a column's original distribution from a release with noise, and from what was added to it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.publishing import publisher_of
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError
from sqlanon.methods.randomization.reconstruction.bins import spread, transitions
from sqlanon.methods.randomization.reconstruction.estimating import Estimate, estimate, has_inverse, invert
from sqlanon.methods.randomization.reconstruction.released_column import GroupedColumn, require_few
from sqlanon.methods.randomization.reconstruction.result import ReconstructedGroup, ReconstructedShare, Reconstruction
from sqlanon.methods.randomization.reconstruction.uncertain import uncertain_groups
from sqlanon.models.randomization.changes import (
    AddedNoise,
    CategoryChange,
    RandomChange,
    UncertainNoise,
    read_changes,
)
from sqlanon.plan.connecting import open_release
from sqlanon.plan.lookup import require_columns
from sqlanon.plan.new_tables import find_new_table
from sqlanon.policy import Policy, Recodes
from sqlanon.sql import Expression, Identifier, Relation
from sqlanon.support.suggest import did_you_mean
from sqlanon.values.expressions import text_of
from sqlanon.work.publish.companion import NOISE, companion_of

Method = Literal["em", "bayes", "inversion"]


BINS = 50


MOST_BINS = 1000


_OPTION = "--table"


def reconstruct(
    policy: Policy,
    column: str,
    *,
    by: str | None = None,
    bins: int = BINS,
    method: Method | None = None,
    range_: tuple[float, float] | None = None,
    table: str | None = None,
    options: EngineOptions | None = None,
) -> Reconstruction:
    """Estimate the original distribution of a randomized column from the policy's release alone.

    by: a column that is released as it is, of which every value is a group with a distribution of its own.
    bins: of numbers, over the range.
    method: `em`, expectation maximization (Agrawal, Aggarwal, PODS 2001), by default of numbers; `bayes`, numbers as if
        in the middle of their bins (Agrawal, Srikant, SIGMOD 2000); `inversion` of the matrix, by default of
        categories where it has an inverse.
    range_: the least and the greatest original number; by default that which the policy declares, or else that of the
        released numbers, which is wider.
    table: the name of a new table in the release's database, for its owner alone, that the estimate is written to.

    Raises PolicyError (no such release, column or group), AccessError, EngineError.
    """
    if policy.algorithm.recodes is not Recodes.NOISE:
        raise PolicyError("reconstruct is for releases of algorithm: randomize.")
    if not 1 <= bins <= MOST_BINS:
        raise PolicyError(f"There are 1 to {MOST_BINS:,} bins, not {bins:,}.")
    if range_ is not None and not (range_[0] < range_[1] and all(map(math.isfinite, range_))):
        raise PolicyError("The range must be two finite numbers, the lesser one first.")
    with open_release(policy, options=options, keeps=table is not None) as (engine, release):
        place = None if table is None else place_of_estimate(engine, table, by)
        changes = read_released_changes(engine, release)
        if column not in changes:
            raise PolicyError(f"'{column}' was not randomized; {did_you_mean(column, changes)}")
        require_columns(engine, release, [column, *([] if by is None else [by])])
        group = _group_of(engine, release, by, changes)
        change = changes[column]
        if not change.hides_distribution:
            raise PolicyError(
                f"The values of '{column}' were swapped: the released ones are distributed exactly as the originals."
            )
        released = next(one for one in engine.columns(release) if one.name == column)
        source = GroupedColumn(engine, release, released, group)
        chosen = method or _default_method(change)
        groups = _estimate(source, change, bins, chosen, range_ or declared_range(policy, column))
        name = ".".join(release.parts[-2:])
        result = Reconstruction(name, column, change.method, chosen, by, tuple(groups))
        if place is not None:
            write_estimate(engine, place, result)
    return result


def _estimate(
    source: GroupedColumn,
    change: RandomChange,
    bins: int,
    method: Method,
    range_: tuple[float, float] | None,
) -> list[ReconstructedGroup]:
    """Estimate the distribution in each group, by the kind of its change."""
    if isinstance(change, AddedNoise):
        if method == "inversion":
            raise PolicyError("inversion is for categories; numbers are estimated by em or bayes.")
        return _numbers(source, change, bins, method, range_)
    if isinstance(change, UncertainNoise):
        if method != "em":
            raise PolicyError("Numbers whose noise has a size of each row's own are estimated by em alone.")
        return uncertain_groups(source, change, bins, range_)
    assert isinstance(change, CategoryChange)
    if method == "bayes":
        raise PolicyError("bayes is for numbers; categories are estimated by em or inversion.")
    return _categories(source, change, method)


def _default_method(change: RandomChange) -> Method:
    return "inversion" if isinstance(change, CategoryChange) and has_inverse(change.matrix) else "em"


def read_released_changes(engine: Engine, release: Relation) -> dict[str, RandomChange]:
    """Read what was added to the columns of a release, by the table that tells of it."""
    noise = engine.resolve(companion_of(release, NOISE))
    if noise is None:
        raise PolicyError(
            f"There is no table {companion_of(release, NOISE)}, which tells what was added: it is released beside the"
            " rows (sqlanon run)."
        )
    require_columns(engine, noise, NOISE.columns)
    return read_changes([tuple(row) for row in engine.query("methods/randomization/list_changes", noise=noise)])


def _group_of(
    engine: Engine, release: Relation, by: str | None, changes: Mapping[str, RandomChange]
) -> Expression | None:
    if by is None:
        return None
    if by in changes:
        raise PolicyError(f"'{by}' was randomized too: groups are of a column that is released as it is.")
    column = next(one for one in engine.columns(release) if one.name == by)
    return text_of(engine.render, Markup(Identifier(by)), column.kind, column.type)


def declared_range(policy: Policy, column: str) -> tuple[float, float] | None:
    """Look up the least and the greatest original number that a policy declares of a column."""
    asked = getattr(policy.algorithm, "columns", {}).get(column)
    return getattr(asked, "range", None)


def _numbers(
    source: GroupedColumn, change: AddedNoise, count: int, method: Method, range_: tuple[float, float] | None
) -> list[ReconstructedGroup]:
    bins = source.bins(range_, count, change.unit)
    counted = source.count(
        "methods/randomization/reconstruction/count_bins",
        number=source.number(change.unit),
        low=bins.low,
        width=bins.width,
    )
    source.require_known(sum(counts.get(None, 0) for counts in counted.values()))
    shown = spread({place: 1 for counts in counted.values() for place in counts})
    require_few(change.column, len(shown))
    probabilities = list(transitions(bins, change, shown, at_middles=method == "bayes"))
    reached = {released for _, released, _ in probabilities}
    if any(reached.isdisjoint(counts) for counts in counted.values()):
        raise PolicyError(
            f"No number in the range becomes, with the noise, what was released of {change.column}: give the range of"
            " its originals (--from, --to)."
        )
    estimates = estimate(list(counted.values()), range(bins.count), probabilities)
    return [
        ReconstructedGroup(
            group,
            rows := sum(counts.values()),
            tuple(
                ReconstructedShare(
                    round(estimated.shares[place], 9), counts.get(place, 0) / rows, None, *bins.bounds(place)
                )
                for place in range(bins.count)
            ),
            estimated.rounds,
            estimated.ended,
        )
        for (group, counts), estimated in zip(counted.items(), estimates, strict=True)
    ]


def _categories(source: GroupedColumn, change: CategoryChange, method: Method) -> list[ReconstructedGroup]:
    counted = source.count("methods/randomization/reconstruction/count_values", text=source.text)
    numbers = {value: place for place, value in enumerate(change.released)}
    foreign = sum(rows for counts in counted.values() for value, rows in counts.items() if value not in numbers)
    if foreign:
        raise PolicyError(f"{foreign:,} released rows hold values of {change.column} that the table of changes lacks.")
    groups = [{numbers[value]: rows for value, rows in counts.items()} for counts in counted.values()]
    if method == "inversion":
        if not has_inverse(change.matrix):
            raise PolicyError(
                f"The matrix of {change.column} has no inverse, as values become the same by nearly the same"
                " probabilities: estimate by rounds (--method em)."
            )
        return [
            _category_group(change, group, counts, invert(counts, change.matrix), None)
            for group, counts in zip(counted, groups, strict=True)
        ]
    estimates = estimate(groups, range(len(change.values)), change.probabilities)
    return [
        _category_group(change, group, counts, one.shares, one)
        for group, counts, one in zip(counted, groups, estimates, strict=True)
    ]


def _category_group(
    change: CategoryChange,
    group: str | None,
    counts: Mapping[int, int],
    shares: Mapping[int, float],
    of: Estimate | None,
) -> ReconstructedGroup:
    rows = sum(counts.values())
    released = {value: counts.get(place, 0) / rows for place, value in enumerate(change.released)}
    listed: Sequence[ReconstructedShare] = [
        ReconstructedShare(round(shares[place], 9), released.get(value, 0.0), value)
        for place, value in enumerate(change.values)
    ]
    return ReconstructedGroup(group, rows, tuple(listed), *((None, None) if of is None else (of.rounds, of.ended)))


def place_of_estimate(engine: Engine, table: str, by: str | None) -> Relation:
    """Find the place of a table of an estimate, before any work.

    Raises PolicyError where the table exists or can't be made, or groups are of a column named as one of the table's.
    """
    if by is not None and by.lower() in Reconstruction.COLUMNS:
        raise PolicyError(f"'{by}' has the name of a column that {_OPTION} writes: rename it in the source, by a view.")
    return find_new_table(engine, table, _OPTION)


def write_estimate(engine: Engine, table: Relation, result: Reconstruction) -> None:
    """Write an estimate into a new table, whole or not at all."""
    by = None if result.by is None else Identifier(result.by)
    with engine.transaction():
        engine.run(
            "methods/randomization/reconstruction/create_estimate", table=table, by=by, is_numeric=result.is_numeric
        )
        publisher_of(engine).guard(table)
        engine.load(table, result.headings, result.rows())
