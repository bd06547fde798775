"""Frequency sets: how many rows have each combination of generalized values, and which of them must be suppressed.

Source: LeFevre, DeWitt, Ramakrishnan, SIGMOD 2005, sections 2 and 3.1 (rollup property, generalization property).
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

from markupsafe import Markup

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.domains import Sensitive
from sqlanon.encoding.frequency.joined_rows import add_short_sets
from sqlanon.encoding.frequency.keys import Keys
from sqlanon.encoding.frequency.lattice import Node
from sqlanon.encoding.frequency.marginals import Marginal, marginal_table, measure_marginals
from sqlanon.encoding.frequency.stars import complete_stars
from sqlanon.encoding.frequency.task import ClassesOfSize, LatticeTask, Verdict
from sqlanon.engines.base import Engine
from sqlanon.models.base import Groups, PrivacyModel
from sqlanon.models.solver import settle
from sqlanon.sql import Expression, Identifier, Relation, Statement, macro
from sqlanon.work.workspace import Workspace

_INT_ROWS = 2**31 - 1


@dataclass(frozen=True)
class FrequencySet:
    """A work table `(k0, k1, …, s0, s1, …, n)`: tuples generalized to `node`, the sensitive codes, and their rows.

    Every node above `node` can be counted from it.

    number: its `id` in a table that holds several; None if the table is its own.
    """

    table: Relation
    node: Node
    tuples: int
    number: int | None = None


@dataclass(frozen=True)
class Bucket:
    """Some classes, each of them whole: those whose key has a hash from `low` up to `high`, in 4096ths of the range.

    What is counted in a bucket is a lower bound, and what is counted in all of them adds up. A sample of rows would
    not do: it makes every class smaller than it is.
    """

    low: int
    high: int


@dataclass
class FrequencySets:
    """Answers questions about generalizations, from a base frequency set and those rolled up from it.

    population: the frequency set `(k0, k1, …, n)` of the population table that models look at.
    numbers: those of the next work tables; sets of parts of one table share them, for tables of several may be in use.
    counts_together: whether several generalizations, or some classes of one, may be counted in a statement.
    """

    counts_together: ClassVar[bool] = True

    engine: Engine
    workspace: Workspace
    coded: CodedTable
    task: LatticeTask
    keys: Keys
    base: FrequencySet
    population: Relation | None = None
    checked: int = 0
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _kept: tuple[Node, Relation, Verdict] | None = field(default=None, init=False)

    def satisfies(self, verdict: Verdict) -> bool:
        """Tell whether a generalization with this verdict is within the budget."""
        return verdict.suppressed <= self.task.budget

    def check(self, node: Node, source: FrequencySet | None = None) -> Verdict:
        """Judge a generalization from `source` (by default the base)."""
        self.checked += 1
        if self.task.least_rows is not None:
            return self.count_small(node, source=source)
        if not self.task.moves:
            return self.count_failing(node, source=source)
        failing, verdict = self.create_failing(node, source)
        self.workspace.drop(failing)
        return verdict

    def count_small(self, node: Node, bucket: Bucket | None = None, source: FrequencySet | None = None) -> Verdict:
        """The rows in classes that have too few of them for some model, among the classes of a bucket."""
        keys, k, table = self.keys.of_node(node), self.task.fewest_rows, (source or self.base).table
        (small,) = self.engine.query_one("encoding/frequency/count_small", table=table, keys=keys, k=k, bucket=bucket)
        return Verdict(int(small), int(small))

    def count_failing(self, node: Node, bucket: Bucket | None = None, source: FrequencySet | None = None) -> Verdict:
        """The rows in classes, of a bucket, that violate a model in the table as it is before any are left out.

        Models of whole tables have a say where all classes are counted.
        """
        table = (source or self.base).table
        values = self.values_of_checks(node, table, self.task.sensitive, bucket=bucket)
        if self.task.table_models and bucket is None:
            counted = self.engine.query("encoding/frequency/count_sizes", **values)
            return self.task.verdict_of([ClassesOfSize(*map(int, one)) for one in counted])
        suppressed, floor = self.engine.query_one("encoding/frequency/count_failing", **values)
        return Verdict(int(suppressed), int(floor))

    def create_failing(self, node: Node, source: FrequencySet | None = None) -> tuple[Relation, Verdict]:
        """The classes to suppress at a generalization, as a work table `(class, n, floor)`, and the verdict.

        `class` is `record` of the node's keys. Where leaving rows out changes the distribution that the others are
        compared with, classes are left out until all that remain satisfy the models, or the budget is exceeded; the
        smallest, and of equal ones the first by their keys, for models of whole tables and of joined rows. Where
        suppressed rows are judged as a class, others join it until it satisfies them (see `Stars`).
        """
        table = (source or self.base).table
        failing = self.workspace.table("failing", next(self.numbers))
        sensitive = self.task.sensitive
        self.engine.run(
            "encoding/frequency/create_failing",
            failing=failing,
            **self.values_of_checks(node, table, sensitive),
        )
        self._add_of_all(node, table, failing)
        suppressed, floor, classes = self._sum(failing)
        before = 0
        while self.task.shifts and before < classes and suppressed <= self.task.budget:
            before = classes
            self.engine.analyze(failing)
            sensitive = tuple(self._narrow(one, i, node, table, failing) for i, one in enumerate(self.task.sensitive))
            values_of_checks = self.values_of_checks(node, table, sensitive, failing, self.task.rows - suppressed)
            self.engine.run("encoding/frequency/add_failing", **values_of_checks)
            self._add_of_all(node, table, failing)
            suppressed, _, classes = self._sum(failing)
        if self.task.completes and 0 < suppressed <= self.task.budget:
            suppressed = complete_stars(self, named_groups(self.task.sensitive), (node, table, failing), suppressed)
        return failing, Verdict(suppressed, floor)

    def _add_of_all(self, node: Node, table: Relation, failing: Relation) -> None:
        """Add what models need left out that look at all classes together, if the others are within the budget."""
        if self.task.table_models:
            self._add_smallest(node, table, failing)
        if self.task.joined and self._sum(failing)[0] <= self.task.budget:
            places = [one.name for one in self.task.sensitive]
            person = sensitive_column(places.index(str(self.task.joined[0].attribute)))
            add_short_sets(self, node, table, failing, person)

    def _add_smallest(self, node: Node, table: Relation, failing: Relation) -> None:
        """Add the classes that models of whole tables need left out of those that are not."""
        values = {"table": table, "keys": self.keys.of_node(node), "failing": failing}
        self.engine.analyze(failing)
        kept = {
            int(size): int(classes)
            for size, classes in self.engine.query("encoding/frequency/count_kept_sizes", **values)
        }
        out = self.task.leave_out(kept)
        if out.taken_from(kept) != kept:
            self.engine.run("encoding/frequency/add_smallest", size=out.size, classes=out.classes, **values)

    def distinct_levels(self, low: Node, high: Node) -> tuple[tuple[int, ...], ...]:
        """The levels of each attribute, between two generalizations, of which each merges groups of the one below."""
        limits = zip(self.marginals, low, high, strict=True)
        return tuple(tuple(marginal.distinct_levels(least, most)) for marginal, least, most in limits)

    @cached_property
    def marginals(self) -> tuple[Marginal, ...]:
        """Each quasi-identifier's levels by themselves."""
        return measure_marginals(self.engine, self.workspace, self.keys, self.base.table, self.task.rows)

    @contextlib.contextmanager
    def suppressed_keys(self, node: Node) -> Iterator[Expression]:
        """The classes to suppress at a generalization, as a subquery `(k0, k1, …, n)` of the words that it keeps.

        A class may come in several parts.
        """
        if self.task.least_rows is not None and (self._kept is None or self._kept[0] != node):
            yield self._small_classes(node)
            return
        if self._kept is None or self._kept[0] != node:
            self.suppress(node)
        assert self._kept is not None
        kept = self._kept[1]
        if self.task.least_rows is not None:
            yield Markup(kept)
            return
        keys, words, table = self.keys.of_node(node), self._words(node), self.base.table
        yield self.engine.render("encoding/frequency/failing_keys", table=table, words=words, keys=keys, failing=kept)

    def suppressed_tuples(self, node: Node) -> dict[str, Any]:
        """Build the values of the template `suppressed_tuples`, for the classes to suppress at a generalization."""
        keys = self.keys.of_node(node)
        if self.task.least_rows is None:
            self.suppress(node)
            matches = [{"name": Identifier("class"), "value": self.engine.render.macro("record", keys)}]
        else:
            matches = [{"name": one, "value": key} for one, key in zip(self.keys.kept_columns(node), keys, strict=True)]
        is_kept = self._kept is not None and self._kept[0] == node
        classes = self._kept[1] if self._kept is not None and is_kept else self._small_classes(node)
        return {"table": self.base.table, "classes": classes, "matches": matches}

    def suppress(self, node: Node) -> Verdict:
        """Judge a generalization, and keep the classes to suppress there for `suppressed_keys`, until the next one."""
        if self._kept is not None and self._kept[0] == node:
            return self._kept[2]
        if self._kept is not None:
            self.workspace.drop(self._kept[1])
        if self.task.least_rows is None:
            kept, verdict = self.create_failing(node)
        else:
            kept = self.workspace.table("small", next(self.numbers))
            self.engine.run("encoding/frequency/create_small", small=kept, classes=self._small_classes(node))
            (rows,) = self.engine.query_one("encoding/frequency/sum_small", small=kept)
            verdict = Verdict(int(rows), int(rows))
        self.engine.analyze(kept)
        self._kept = node, kept, verdict
        return verdict

    def _small_classes(self, node: Node) -> Statement:
        k, words = self.task.least_rows, self._words(node)
        return self.engine.render("encoding/frequency/small_classes", table=self.base.table, words=words, k=k)

    def _words(self, node: Node) -> list[dict[str, Identifier | Expression]]:
        """The words that a generalization keeps, and how they are read."""
        pairs = zip(self.keys.kept_columns(node), self.keys.of_node(node), strict=True)
        return [{"name": name, "value": value} for name, value in pairs]

    def new_table(self) -> Relation:
        """The name of one more table of frequency sets."""
        return self.workspace.table("frequency", next(self.numbers))

    def part(self, table: Relation, task: LatticeTask) -> FrequencySets:
        """The frequency sets of a part of the table, from the tuples in it."""
        base = FrequencySet(table, self.base.node, count_tuples(self.engine, table, -1))
        return FrequencySets(
            self.engine, self.workspace, self.coded, task, self.keys, base, self.population, numbers=self.numbers
        )

    def drop_marginals(self) -> None:
        """Make room for the marginals of another part of the table."""
        self.workspace.drop(*(marginal_table(self.workspace, dimension) for dimension in self.keys.dimensions))

    def _sum(self, failing: Relation) -> tuple[int, int, int]:
        suppressed, floor, classes = self.engine.query_one("encoding/frequency/sum_failing", failing=failing)
        return int(suppressed), int(floor), int(classes)

    def recount(self, one: Sensitive, number: int) -> Sensitive:
        """A sensitive attribute with its domain over the rows of the base."""
        recounted = self.workspace.table("recounted", number)
        self.engine.run(
            "encoding/frequency/recount_domain",
            recounted=recounted,
            domain=one.domain,
            column=sensitive_column(number),
            table=self.base.table,
            levels=list(range(1, one.height + 1)),
            texts=one.texts,
        )
        self.engine.analyze(recounted)
        return replace(one, domain=recounted)

    def _narrow(self, one: Sensitive, number: int, node: Node, table: Relation, excluded: Relation) -> Sensitive:
        """A sensitive attribute, whose domain is that of `table`, over the rows that are not in excluded classes."""
        narrowed = self.workspace.table("narrowed", number)
        self.workspace.drop(narrowed)
        self.engine.run(
            "encoding/frequency/narrow_domain",
            narrowed=narrowed,
            domain=one.domain,
            column=sensitive_column(number),
            table=table,
            excluded=excluded,
            keys=self.keys.of_node(node),
            levels=list(range(1, one.height + 1)),
            texts=one.texts,
        )
        self.engine.analyze(narrowed)
        return replace(one, domain=narrowed)

    def values_of_checks(
        self,
        node: Node,
        table: Relation | Expression,
        sensitive: Sequence[Sensitive],
        excluded: Relation | None = None,
        rows: int | None = None,
        population: Relation | Expression | None = None,
        **changed: Any,
    ) -> dict[str, Any]:
        """Build the values of the statements over failing classes; `rows` are those that are not left out.

        population: in place of its frequency set. changed: those values that are not the usual ones.
        """
        named = named_groups(sensitive)
        values = {
            "table": table,
            "keys": self.keys.of_node(node),
            "sensitive": list(named.values()),
            "excluded": excluded or Markup(""),
            "bucket": None,
            "several": (),
            **changed,
        }
        compared = rows or self.task.compared or self.task.rows
        measures = [
            {"statement": statement, "floor": model.min_suppressed()}
            for model, statement in self.measures(named, sensitive, compared, "encoding/frequency/list_open", values)
        ]
        beyond = self.task.rows + 1 if self.task.covers_population else None
        return {**values, "measures": measures, "population": population or self.population, "beyond": beyond}

    def measures(
        self,
        named: Mapping[str, Any],
        sensitive: Sequence[Sensitive],
        rows: int,
        listing: str,
        values: Mapping[str, Any],
    ) -> list[tuple[PrivacyModel, Expression]]:
        """Write what each model measures of the classes of a statement.

        rows: that the models compare with. listing: the template that lists what models leave open of these classes,
        and its values.
        """
        domains = {one.name: one for one in sensitive}

        def list_open(model: PrivacyModel, worst: bool) -> list[Any]:
            groups = self._groups(model, named, domains, rows)
            listed = model.list_open(self.engine.render, groups, worst=worst)
            return self.engine.query(listing, listed=listed, **values)

        models = settle(self.task.class_models, list_open)
        return [
            (model, model.measure(self.engine.render, self._groups(model, named, domains, rows))) for model in models
        ]

    def _groups(
        self, model: PrivacyModel, named: Mapping[str, Any], domains: Mapping[str, Sensitive], rows: int
    ) -> Groups:
        classes = Markup(Identifier("classes"))
        population = None if self.population is None else Markup(Identifier("population"))
        groups = Groups(classes, None, None, rows, population=population)
        if model.attribute is not None:
            domain = domains[model.attribute]
            avs, table = Markup(named[model.attribute]["avs"]), Markup(domain.domain)
            groups = Groups(classes, avs, table, rows, domain.height)
        return groups


def named_groups(sensitive: Sequence[Sensitive]) -> dict[str, dict[str, Identifier]]:
    """The columns of sensitive attributes in frequency sets, and the names of their AVS groups in statements."""
    return {one.name: {"column": sensitive_column(i), "avs": Identifier(f"avs_{i}")} for i, one in enumerate(sensitive)}


def sensitive_column(number: int) -> Identifier:
    return Identifier(f"s{number}")


def count_type(rows: int) -> Expression:
    """Narrow counts are added up faster."""
    return macro("values.whole_type", rows <= _INT_ROWS)


def count_tuples(engine: Engine, table: Relation, rows: int) -> int:
    """The tuples of a table, given what the engine said was written to it: -1 where it doesn't know."""
    return rows if rows >= 0 else int(engine.query_one("count_rows", table=table)[0])
