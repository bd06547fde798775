"""Local recoding of the remainder: rows that a generalization would suppress are generalized again among themselves.

The first pass recodes the table at the generalization that the search chose. Each further one takes the rows that are
left and looks above the last pass's generalization for the best one that puts at least half of them into classes that
satisfy the models; if there is none, for the best that puts any there. What no pass could place stays suppressed.

t-closeness compares a class with the table that is released. While passes are made that is the whole table; if rows
are left out in the end, all classes are judged once more against what remains. Rows that are shown with stars in the
end must be a class that satisfies the models: the smallest classes of all passes join them until they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlanon.encoding.frequency.frequency_sets import FrequencySet, FrequencySets, named_groups, sensitive_column
from sqlanon.encoding.frequency.keys import WholeKeys
from sqlanon.encoding.frequency.lattice import Node
from sqlanon.encoding.frequency.stars import complete_stars
from sqlanon.encoding.frequency.task import LatticeTask
from sqlanon.errors import ProtectionError
from sqlanon.methods.generalization.lattice.optimal import optimal
from sqlanon.methods.generalization.lattice.problem import Problem
from sqlanon.methods.generalization.lattice.quality.qualities import quality_of
from sqlanon.methods.generalization.policy import FullDomain, Optimal
from sqlanon.releases.recoding import Generalization, RecodingPass, create_pass, recode_node, release_of
from sqlanon.results.search_facts import LatticeFacts
from sqlanon.results.search_facts import Pass as PassFacts
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
    done: list[RecodingPass] = field(default_factory=list)
    sources: list[Relation] = field(default_factory=list)
    placed: list[int] = field(default_factory=list)
    checked: int = 0

    @property
    def left(self) -> int:
        """The rows that no pass has put into a class."""
        return 0 if self.rest is None else self.rest.task.rows

    def run(self, node: Node) -> None:
        """Make passes from a generalization up, for as long as they put rows into classes."""
        current: Node | None = node
        while current is not None and self.rest is not None:
            self.rest = self._pass(self.rest, current)
            current = self._above(current) if self.rest is not None else None

    def replay(self, nodes: Sequence[Node]) -> None:
        """Make these passes."""
        for node in nodes:
            if self.rest is not None:
                self.rest = self._pass(self.rest, node)

    def go_back(self) -> None:
        """Undo all passes but the first."""
        if len(self.done) > 1:
            self.rest = self._rest(self.sources[1], self.whole.task.rows - self.placed[0])
            self.whole.workspace.drop(*(made.classes for made in self.done[1:]))
            del self.done[1:], self.sources[1:], self.placed[1:]

    def _pass(self, sets: FrequencySets, node: Node) -> FrequencySets | None:
        """Recode at a generalization; the sets of what is left, if any is."""
        first = 1 + sum(self.placed)  # leaves are numbered on from pass to pass; no pass has more than rows
        failing, verdict = sets.create_failing(node)
        sets.engine.analyze(failing)
        made = create_pass(sets, node, failing, len(self.done), first)
        self.done.append(made)
        self.sources.append(sets.base.table)
        self.placed.append(sets.task.rows - verdict.suppressed)
        rest = self._part(sets, node, failing, verdict.suppressed) if verdict.suppressed else None
        sets.workspace.drop(failing)
        return rest

    def _part(self, sets: FrequencySets, node: Node, failing: Relation, rows: int) -> FrequencySets:
        table = sets.workspace.table("rest", len(self.done))
        sets.engine.run(
            "methods/generalization/lattice/create_suppressed",
            suppressed=table,
            table=sets.base.table,
            failing=failing,
            keys=sets.keys.of_node(node),
        )
        sets.engine.analyze(table)
        return self._rest(table, rows)

    def _rest(self, table: Relation, rows: int) -> FrequencySets:
        """The sets of the rows that are left after a pass: so many, with these tuples."""
        whole = self.whole.task
        task = LatticeTask(whole.models, whole.sensitive, rows, 0, omits=False, compared=whole.rows)
        return self.whole.part(table, task)

    def _above(self, node: Node) -> Node | None:
        """The generalization of the next pass."""
        assert self.rest is not None
        for budget in dict.fromkeys((self.left // 2, self.left - 1)):
            chosen = self._search(replace(self.rest.task, budget=budget), node)
            if chosen is not None:
                return chosen
        return None

    def _search(self, task: LatticeTask, node: Node) -> Node | None:
        assert self.rest is not None
        sets, problem = self.rest.part(self.rest.base.table, task), self.problem
        sets.drop_marginals()
        lattice = replace(problem.lattice, bottom=node)
        quality = quality_of(self.algorithm, sets, lattice)
        findings = optimal(Problem(sets, lattice, quality, problem.report, problem.deadline), Optimal(name="optimal"))
        self.checked += sets.checked
        sets.drop_marginals()
        return findings.chosen


def recode_remainder(
    problem: Problem, algorithm: FullDomain, node: Node, facts: LatticeFacts, *, judges_stars: bool
) -> Generalization:
    """The release of one generalization, with the rows that it suppresses recoded as far as possible.

    facts: of the search that chose it, to which those of the passes are added.
    Where that leaves more rows than may be suppressed, which t-closeness can bring about, or starred rows that are too
    few for a class, the remainder is suppressed as it would be without this. Raises ProtectionError where
    `judges_stars` and the starred rows are no class then, either.
    """
    sets = problem.sets
    passes = _new_passes(problem, algorithm)
    passes.run(node)
    left = passes.left
    suppressed = left + _leave_more_out(passes, judges_stars=judges_stars)
    if suppressed > sets.task.budget and judges_stars:
        passes.go_back()
        suppressed = passes.left + _leave_more_out(passes, judges_stars=True)
        if suppressed > sets.task.budget:
            raise ProtectionError(_too_few(left))
    if suppressed > sets.task.budget:
        sets.workspace.drop(*(made.classes for made in passes.done))
        partition = recode_node(sets, node)
        placed = [(node, sets.task.rows - partition.suppressed)]
    else:
        partition = release_of(sets, passes.done, suppressed)
        placed = list(zip((made.node for made in passes.done), passes.placed, strict=True))
    names = problem.lattice.names
    made = tuple(PassFacts(dict(zip(names, levels, strict=True)), rows) for levels, rows in placed)
    return replace(partition, facts=replace(facts, passes=made, checked=sets.checked + passes.checked))


def recode_in_passes(
    problem: Problem, algorithm: FullDomain, nodes: Sequence[Node], *, judges_stars: bool
) -> Generalization:
    """The release of several passes that are known, whatever has to be suppressed."""
    passes = _new_passes(problem, algorithm)
    passes.replay(nodes)
    suppressed = passes.left + _leave_more_out(passes, judges_stars=judges_stars)
    return release_of(problem.sets, passes.done, suppressed)


def _new_passes(problem: Problem, algorithm: FullDomain) -> Passes:
    sets = problem.sets
    whole = sets.part(sets.base.table, replace(sets.task, omits=False))
    return Passes(problem, algorithm, whole, whole)


def _leave_more_out(passes: Passes, *, judges_stars: bool) -> int:
    """Suppress classes because of the rows that are left; how many rows that takes."""
    if passes.left and passes.problem.sets.task.moves:
        return _leave_out(passes)
    return _complete(passes) - passes.left if passes.left and judges_stars else 0


def _too_few(rows: int) -> str:
    return (
        f"{rows:,} rows are left that no pass of `remainder: recode` puts into a class. `suppressed: star` would show"
        " them as one that violates a model, and no further classes can join it within the suppression budget; nothing"
        " was published. Allow more suppression, leave the rows out with `suppressed: omit`, or accept rows that no"
        " model protects with `suppressed: {star: unprotected}`."
    )


def _leave_out(passes: Passes) -> int:
    """Leave out the classes that violate a model in the table without the rows that are left, until none does."""
    table = _create_passed(passes)
    failing, verdict = _by_leaf(passes, table).create_failing(())
    _drop_classes(passes, failing)
    passes.whole.workspace.drop(failing, table)
    return verdict.suppressed


def _complete(passes: Passes) -> int:
    """Star the smallest classes with the rows that are left until these satisfy the models; the rows starred then.

    More than the budget where no classes within it do; then all stay as they are.
    """
    assert passes.rest is not None
    workspace, engine = passes.whole.workspace, passes.whole.engine
    table, failing = _create_passed(passes, passes.rest.base.table), workspace.table("left")
    engine.run("methods/generalization/lattice/create_left", failing=failing, rows=passes.left)
    engine.analyze(failing)
    whole, budget = passes.whole.task, passes.problem.sets.task.budget
    sets = _sets_of(passes, table, replace(whole, budget=budget, judges_stars=True))
    rows = complete_stars(sets, named_groups(whole.sensitive), ((), table, failing), passes.left)
    if rows <= budget:
        _drop_classes(passes, failing)
    workspace.drop(failing, table)
    return rows


def _create_passed(passes: Passes, rest: Relation | None = None) -> Relation:
    sets = passes.whole
    table = sets.workspace.table("passed")
    sets.engine.run(
        "methods/generalization/lattice/create_passed",
        passed=table,
        sensitive=[sensitive_column(i) for i in range(len(sets.task.sensitive))],
        passes=[
            {"table": source, "classes": made.classes, "words": sets.keys.in_rows(made.node, sets.coded.words)}
            for made, source in zip(passes.done, passes.sources, strict=True)
        ],
        rest=rest,
    )
    sets.engine.analyze(table)
    return table


def _drop_classes(passes: Passes, failing: Relation) -> None:
    engine = passes.whole.engine
    for place, made in enumerate(passes.done):
        engine.run("methods/generalization/lattice/drop_classes", classes=made.classes, failing=failing)
        (rows,) = engine.query_one("methods/generalization/lattice/count_placed", classes=made.classes)
        passes.placed[place] = int(rows)


def _by_leaf(passes: Passes, table: Relation) -> FrequencySets:
    """The classes of all passes, compared with the rows in them."""
    task = passes.whole.task
    rows, budget = task.rows - passes.left, passes.problem.sets.task.budget - passes.left
    sets = _sets_of(passes, table, replace(task, rows=rows, budget=max(budget, 0), omits=True))
    remaining = tuple(sets.recount(one, number) for number, one in enumerate(task.sensitive))
    sets.task = replace(sets.task, sensitive=remaining)
    return sets


def _sets_of(passes: Passes, table: Relation, task: LatticeTask) -> FrequencySets:
    """The classes of all passes as a frequency set, whose keys are their leaves."""
    sets, base = passes.whole, FrequencySet(table, (), task.rows)
    keys = WholeKeys((), 1)
    return FrequencySets(sets.engine, sets.workspace, sets.coded, task, keys, base, numbers=sets.numbers)
