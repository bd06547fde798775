"""The search for m-invariant classes (Xiao, Tao, SIGMOD 2007, section 5): divide, balance, assign, split.

1. Persons whose classes showed the same set of values are a bucket. 2. Newcomers fill its gaps, so that each value of
the set occurs equally often; then counterfeits do, or rows are left out. 3. All other newcomers are dealt out to as
many classes as there can be, one of each value to a class; classes with the same values are a bucket, too. 4. Buckets
are cut in two, again and again, by the order of a quasi-identifier within each value, until each value occurs once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlanon.algorithms import Algorithm, SearchRequest
from sqlanon.encoding.axes import measured_axes
from sqlanon.errors import PolicyError, ProtectionError
from sqlanon.methods.invariance.release import NumberedClasses
from sqlanon.releases.former_sets import FormerSets
from sqlanon.results.search_facts import BucketFacts
from sqlanon.sql import Relation
from sqlanon.staging.classes import partition_of
from sqlanon.staging.partition import Partition
from sqlanon.support.quantities import quantity


@dataclass(frozen=True)
class BucketDecision:
    """The classes of persons, and the rows of nobody in them.

    sets: a work table `(leaf, shown)`, the values of each class as one text. counterfeits: one of `(leaf, raw)`.
    """

    partition: Partition
    sets: Relation
    counterfeits: Relation


class BucketSearch(Algorithm[BucketDecision]):
    """Buckets of persons with the same set of values, cut into classes that have each value once."""

    needs_all_witnesses = True

    def search(self, request: SearchRequest) -> BucketDecision:
        if request.sets is None:
            raise PolicyError(
                f"algorithm: {self.parameters.name} continues what an account knows of these people, and no account is"
                " read here; use `sqlanon run`."
            )
        (model,) = request.models
        members, rounds, buckets = _cut(request, self._fill(request, request.sets, model.least_rows))
        return self._decide(request, request.sets, members, rounds, buckets)

    def _fill(self, request: SearchRequest, sets: FormerSets, m: int) -> Relation:
        """Write down the members of buckets: of those that had sets before, filled up, and those of newcomers."""
        engine, workspace, words = request.engine, request.workspace, request.coded.word_columns
        names = ("survivors", "newcomers", "balance", "pool", "dealt")
        survivors, newcomers, balance, pool, dealt = tables = [workspace.table(f"bucket_{name}") for name in names]
        of_rows: dict[str, Any] = {"rows": sets.rows, "words": words}
        engine.run("methods/invariance/create_survivors", survivors=survivors, sets=sets.sets, **of_rows)
        engine.run("methods/invariance/create_newcomers", newcomers=newcomers, **of_rows)
        engine.analyze(survivors, newcomers)
        self._balance(request, {"survivors": survivors, "newcomers": newcomers, "sets": sets.sets}, balance)
        engine.run("methods/invariance/create_pool", pool=pool, newcomers=newcomers, balance=balance)
        engine.analyze(pool)
        values = engine.query("methods/invariance/count_values", pool=pool)
        classes = most_classes([(int(n), int(n_values)) for n, n_values in values], m)
        engine.run("methods/invariance/create_dealt", dealt=dealt, pool=pool, classes=classes, words=words)
        members, joined = workspace.table("bucket_members"), {"survivors": survivors, "balance": balance, "pool": pool}
        engine.run("methods/invariance/create_members", members=members, dealt=dealt, words=words, **joined)
        engine.analyze(members)
        workspace.drop(*tables)
        return members

    def _balance(self, request: SearchRequest, of_buckets: dict[str, Relation], balance: Relation) -> None:
        """Decide how many rows of each value a bucket gets: of persons who had its set, of newcomers, and of nobody."""
        engine, gaps = request.engine, request.workspace.table("bucket_gaps")
        most = self.parameters.most_counterfeits(request.coded.source_rows)
        engine.run("methods/invariance/create_gaps", gaps=gaps, **of_buckets)
        engine.run("methods/invariance/create_balance", balance=balance, gaps=gaps, most=most)
        engine.analyze(balance)
        request.workspace.drop(gaps)

    def _decide(
        self, request: SearchRequest, sets: FormerSets, members: Relation, rounds: int, buckets: int
    ) -> BucketDecision:
        """Assign rows to their classes, and hold those that are left out to the limit of the policy."""
        engine, workspace, coded = request.engine, request.workspace, request.coded
        assigned, counterfeits = workspace.table("assigned"), workspace.table("counterfeits")
        engine.run("methods/invariance/assign_rows", assigned=assigned, members=members, words=coded.word_columns)
        engine.run("methods/invariance/create_counterfeits", counterfeits=counterfeits, members=members)
        shown = workspace.table("class_sets")
        engine.run("methods/invariance/create_class_sets", shown=shown, members=members)
        engine.analyze(assigned, counterfeits, shown)
        counted = engine.query_one(
            "methods/invariance/count_suppressed",
            assigned=assigned,
            counterfeits=counterfeits,
            members=members,
            rows=sets.rows,
            sets=sets.sets,
        )
        _, kept, made, newcomers, lacking, unknown, changed = map(int, counted)
        facts = BucketFacts(buckets, made, newcomers, lacking, changed, unknown)
        suppressed = coded.source_rows - kept
        if not kept or suppressed > request.policy.suppressible(coded.source_rows):
            raise ProtectionError(_refused(facts, suppressed, coded.source_rows, made))
        workspace.drop(members, sets.rows, sets.sets)
        partition = partition_of(engine, workspace, coded, assigned, rounds)
        return BucketDecision(replace(partition, suppressed=suppressed, facts=facts), shown, counterfeits)

    def release(self, request: SearchRequest, decision: BucketDecision) -> NumberedClasses:
        (model,) = request.models
        return NumberedClasses.number(
            request.engine,
            request.workspace,
            request.coded,
            decision.partition,
            decision.sets,
            decision.counterfeits,
            str(model.attribute),
        )


def most_classes(values: Sequence[tuple[int, int]], m: int) -> int:
    """Return how many classes of `m` or more rows there can be at most, no two rows of one with the same value.

    values: pairs of a number of rows, and how many values have so many. So many classes take as many rows of each value
    at most, and need m times as many (Xiao, Tao, "Anatomy", VLDB 2006, property 1).
    """

    def lacks_rows(classes: int) -> bool:
        return sum(n_values * min(n, classes) for n, n_values in values) < m * classes

    most = sum(n * n_values for n, n_values in values) // m
    return bisect_left(range(1, most + 1), True, key=lacks_rows)


def _cut(request: SearchRequest, members: Relation) -> tuple[Relation, int, int]:
    """Cut buckets until each value occurs once; return the rows, their classes as `node`, the rounds, the buckets."""
    engine, workspace, coded = request.engine, request.workspace, request.coded
    axes, widest = measured_axes(engine, coded), workspace.table("bucket_widest")
    most, buckets = map(int, engine.query_one("methods/invariance/measure_buckets", members=members))
    rounds = max(0, most - 1).bit_length()
    for number in range(rounds):
        cut = workspace.table("bucket_cut", number)
        engine.run("methods/invariance/create_widest", widest=widest, members=members, axes=axes)
        engine.analyze(widest)
        engine.run(
            "methods/invariance/cut_buckets",
            cut=cut,
            members=members,
            widest=widest,
            axes=axes,
            words=coded.word_columns,
        )
        engine.analyze(cut)
        workspace.drop(members, widest)
        members = cut
    return members, rounds + 1, buckets


def _refused(facts: BucketFacts, suppressed: int, rows: int, made: int) -> str:
    """Say why too many rows would be left out, and what helps."""
    reasons = [
        (facts.newcomers, "new, and too many of them have the same value"),
        (facts.lacking, "of sets of values that lack rows"),
        (facts.changed, "now of a value that none of their earlier classes showed"),
        (facts.unknown, "of sets that the release before does not show any more"),
    ]
    listed = "; ".join(f"{count:,} {reason}" for count, reason in reasons if count)
    return (
        f"No m-invariant release has enough rows: {suppressed:,} of {quantity(rows, 'row')} would be left out"
        f" ({listed}). {quantity(made, 'counterfeit')} filled gaps. Allow more: suppression is the share of rows that"
        " may be left out, and algorithm.counterfeits that of rows of nobody which fill the gaps of sets."
    )
