"""Local recoding of the remainder: rows that a generalization would suppress are generalized again among themselves.

The first pass recodes the table at the generalization that the search chose. Each further one takes the rows that are
left and looks above the last pass's generalization for the best one that puts at least half of them into classes that
satisfy the models; if there is none, for the best that puts any there. What no pass could place stays suppressed.

t-closeness compares a class with the table that is released. While passes are made that is the whole table; if rows
are left out in the end, all classes are judged once more against what remains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlanon.lattice.frequency import FrequencySet, FrequencySets, sensitive_column
from sqlanon.lattice.keys import WholeKeys
from sqlanon.lattice.lattice import Node
from sqlanon.lattice.optimal import optimal
from sqlanon.lattice.problem import Problem
from sqlanon.lattice.qualities import quality_of
from sqlanon.lattice.recoding import Pass, create_pass, recode_node, release_of
from sqlanon.lattice.task import Task
from sqlanon.partition.result import Partition
from sqlanon.policy import FullDomain, Optimal
from sqlanon.sql import Relation


@dataclass
class Passes:
    """The passes so far.

    whole: the sets of the table, judged as if nothing were left out.
    rest: the sets of the rows that are left; None if none are.
    sources: the table of tuples that each pass was made from; placed: the rows that it put into classes.
    """

    problem: Problem
    algorithm: FullDomain
    whole: FrequencySets
    rest: FrequencySets | None
    done: list[Pass] = field(default_factory=list)
    sources: list[Relation] = field(default_factory=list)
    placed: list[int] = field(default_factory=list)
    checked: int = 0

    @property
    def left(self) -> int:
        """The rows that no pass has put into a class."""
        return 0 if self.rest is None else self.rest.task.rows

    def run(self, node: Node) -> None:
        """Make passes from a generalization up, for as long as they put rows into classes."""
        found: Node | None = node
        while found is not None and self.rest is not None:
            self.rest = self._pass(self.rest, found)
            found = self._above(found) if self.rest is not None else None

    def replay(self, nodes: Sequence[Node]) -> None:
        """Make these passes."""
        for node in nodes:
            if self.rest is not None:
                self.rest = self._pass(self.rest, node)

    def _pass(self, sets: FrequencySets, node: Node) -> FrequencySets | None:
        """Recode at a generalization; the sets of what is left, if any is."""
        number, first = len(self.done), self._next_leaf()
        failing, verdict = sets.create_failing(node)
        sets.engine.analyze(failing)
        made = create_pass(sets, node, failing, number, first)
        self.done.append(made)
        self.sources.append(sets.base.table)
        self.placed.append(sets.task.rows - verdict.suppressed)
        rest = self._part(sets, node, failing, verdict.suppressed) if verdict.suppressed else None
        sets.workspace.drop(failing)
        return rest

    def _part(self, sets: FrequencySets, node: Node, failing: Relation, rows: int) -> FrequencySets:
        table = sets.workspace.table("rest", len(self.done))
        sets.engine.run(
            "lattice/create_suppressed",
            suppressed=table,
            table=sets.base.table,
            failing=failing,
            keys=sets.keys.of_node(node),
        )
        sets.engine.analyze(table)
        task = Task(sets.task.models, sets.task.sensitive, rows, 0, omits=False, compared=self.whole.task.rows)
        return sets.part(table, task)

    def _next_leaf(self) -> int:
        """Leaves are numbered on from pass to pass; no pass has more than rows."""
        return 1 + sum(self.placed)

    def _above(self, node: Node) -> Node | None:
        """The generalization of the next pass."""
        assert self.rest is not None
        for budget in dict.fromkeys((self.left // 2, self.left - 1)):
            found = self._search(replace(self.rest.task, budget=budget), node)
            if found is not None:
                return found
        return None

    def _search(self, task: Task, node: Node) -> Node | None:
        assert self.rest is not None
        sets, problem = self.rest.part(self.rest.base.table, task), self.problem
        sets.drop_marginals()
        lattice = replace(problem.lattice, bottom=node)
        quality = quality_of(self.algorithm, sets, lattice)
        findings = optimal(Problem(sets, lattice, quality, problem.report, problem.deadline), Optimal(name="optimal"))
        self.checked += sets.checked
        sets.drop_marginals()
        return findings.chosen


def recode_remainder(problem: Problem, algorithm: FullDomain, node: Node) -> Partition:
    """The release of one generalization, with the rows that it suppresses recoded as far as possible.

    Where that leaves more rows than may be suppressed, which only t-closeness can bring about, the remainder is
    suppressed as it would be without this.
    """
    sets = problem.sets
    whole = sets.part(sets.base.table, replace(sets.task, omits=False))
    passes = Passes(problem, algorithm, whole, whole)
    passes.run(node)
    suppressed = passes.left + (_leave_out(passes) if passes.left and sets.task.moves else 0)
    if suppressed > sets.task.budget:
        sets.workspace.drop(*(made.classes for made in passes.done))
        partition = recode_node(sets, node)
        return replace(partition, found=_told(problem, [(node, sets.task.rows - partition.suppressed)], passes))
    partition = release_of(sets, passes.done, suppressed)
    pairs = zip((made.node for made in passes.done), passes.placed, strict=True)
    return replace(partition, found=_told(problem, list(pairs), passes))


def recode_in_passes(problem: Problem, algorithm: FullDomain, nodes: Sequence[Node]) -> Partition:
    """The release of several passes that are known, whatever has to be suppressed."""
    sets = problem.sets
    whole = sets.part(sets.base.table, replace(sets.task, omits=False))
    passes = Passes(problem, algorithm, whole, whole)
    passes.replay(nodes)
    suppressed = passes.left + (_leave_out(passes) if passes.left and sets.task.moves else 0)
    return release_of(sets, passes.done, suppressed)


def _told(problem: Problem, placed: list[tuple[Node, int]], passes: Passes) -> dict[str, Any]:
    names = problem.lattice.names
    told = [{"levels": dict(zip(names, node, strict=True)), "rows": rows} for node, rows in placed]
    return {"passes": told, "checked": problem.sets.checked + passes.checked}


def _leave_out(passes: Passes) -> int:
    """Leave out the classes that violate a model in the table without the rows that are left, until none does."""
    sets, workspace = passes.whole, passes.whole.workspace
    table = workspace.table("passed")
    sets.engine.run(
        "lattice/create_passed",
        passed=table,
        sensitive=[sensitive_column(i) for i in range(len(sets.task.sensitive))],
        passes=[
            {"table": source, "classes": made.classes, "words": sets.keys.in_rows(made.node, sets.coded.words)}
            for made, source in zip(passes.done, passes.sources, strict=True)
        ],
    )
    sets.engine.analyze(table)
    by_leaf = _by_leaf(passes, table)
    failing, verdict = by_leaf.create_failing(())
    for place, made in enumerate(passes.done):
        sets.engine.run("lattice/drop_classes", classes=made.classes, failing=failing)
        (rows,) = sets.engine.query_one("lattice/count_placed", classes=made.classes)
        passes.placed[place] = int(rows)
    workspace.drop(failing, table)
    return verdict.suppressed


def _by_leaf(passes: Passes, table: Relation) -> FrequencySets:
    """The classes of all passes, compared with the rows in them."""
    sets = passes.whole
    rows, budget = sets.task.rows - passes.left, passes.problem.sets.task.budget - passes.left
    base = FrequencySet(table, (), rows)
    task = replace(sets.task, rows=rows, budget=max(budget, 0), omits=True)
    keys = WholeKeys((), 1)
    found = FrequencySets(sets.engine, sets.workspace, sets.coded, task, keys, base, numbers=sets.numbers)
    pairs = enumerate(task.sensitive)
    remaining = tuple(found.recount(one, number) for number, one in pairs)
    found.task = replace(task, sensitive=remaining)
    return found
