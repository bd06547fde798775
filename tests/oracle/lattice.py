"""Full-domain generalization in plain Python on raw values: it knows nothing of codes, keys or the search.

A case has quasi-identifiers with hierarchies over a handful of letters, one sensitive attribute of small numbers, rows,
models as the policy writes them, and a budget.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from tests.oracle import brute_force

ROOT = "*"
Node = tuple[int, ...]
Row = tuple[Any, ...]
Model = Mapping[str, Any]
LETTERS = "abcdefgh"
GROUPS = {1: ("low", ROOT), 2: ("low", ROOT), 3: ("high", ROOT), 4: ("high", ROOT)}
"""The hierarchy of the sensitive attribute, for hierarchical t-closeness."""
_SLACK = 1e-9  # the models' tolerance where logarithms or divisions are rounded


@dataclass(frozen=True)
class Hierarchy:
    """From each value to its labels, from level 1 up to the root; it may know values that the data lack."""

    paths: Mapping[str, tuple[str, ...]]

    @property
    def height(self) -> int:
        return len(next(iter(self.paths.values())))

    def label(self, value: str | None, level: int) -> str | None:
        """Generalize a value to a level; NULL is a group of its own below the root."""
        if value is None:
            return ROOT if level == self.height else None
        return value if level == 0 else self.paths[value][level - 1]

    def share(self, label: str | None, level: int, leaves: int) -> float:
        """The leaves that a label covers, as a share of `leaves`."""
        if level == self.height:
            return 1.0
        if label is None or level == 0:
            return 1 / leaves
        return sum(path[level - 1] == label for path in self.paths.values()) / leaves


@dataclass(frozen=True)
class Case:
    """A table `(q0, q1, …, s)` and what is asked of its release."""

    hierarchies: tuple[Hierarchy, ...]
    rows: tuple[Row, ...]
    models: tuple[Model, ...]
    suppression: float = 0.0
    suppressed: str = "omit"
    limits: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return [f"q{i}" for i in range(len(self.hierarchies))]

    @property
    def columns(self) -> dict[str, str]:
        """Names and types of the table."""
        return {**dict.fromkeys(self.names, "VARCHAR(9)"), "s": "INTEGER"}

    @property
    def attributes(self) -> dict[str, Any]:
        """The policy's attributes."""
        quasi = {
            name: {"role": "quasi-identifier", "hierarchy": {"mapping": {v: list(p) for v, p in h.paths.items()}}}
            for name, h in zip(self.names, self.hierarchies, strict=True)
        }
        mapping = {str(value): list(path) for value, path in GROUPS.items()}
        return {**quasi, "s": {"role": "sensitive", "hierarchy": {"mapping": mapping}}}

    @property
    def policy(self) -> dict[str, Any]:
        """The rest of the policy, without the algorithm."""
        shown = {"star": {"star": "unprotected"}, "judged star": "star"}
        suppressed = shown.get(self.suppressed, self.suppressed)
        return {"privacy": list(self.models), "suppression": self.suppression, "suppressed": suppressed}

    @property
    def budget(self) -> int:
        """The rows that may be suppressed."""
        return math.floor(Decimal(str(self.suppression)) * len(self.rows))

    @property
    def nodes(self) -> list[Node]:
        """The whole lattice, within the limits."""
        levels = []
        for name, hierarchy in zip(self.names, self.hierarchies, strict=True):
            low, high = self.limits.get(name, (0, hierarchy.height))
            levels.append(range(low, min(high, hierarchy.height) + 1))
        return list(itertools.product(*levels))

    def classes(self, node: Node, rows: Sequence[Row] | None = None) -> dict[Row, list[Row]]:
        """The equivalence classes of a generalization, by what they show."""
        found: dict[Row, list[Row]] = defaultdict(list)
        for row in self.rows if rows is None else rows:
            shown = (h.label(row[i], node[i]) for i, h in enumerate(self.hierarchies))
            found[tuple(shown)].append(row)
        return dict(found)

    def suppressed_rows(self, node: Node) -> list[Row]:
        """The rows of the classes that violate a model, until none is left that does."""
        kept = self.classes(node)
        table = [row[-1] for row in self.rows]
        out: list[Row] = []
        while True:
            failing = [key for key, rows in kept.items() if self.violates([row[-1] for row in rows], table)]
            for key in failing:
                out += kept.pop(key)
            left_out = self._leave_out(kept)
            out += left_out
            if not (failing or left_out) or self.suppressed == "star":
                return out
            if self.suppressed == "judged star":
                return self._completed(out, kept, table)
            table = [row[-1] for rows in kept.values() for row in rows]

    def _leave_out(self, kept: dict[Row, list[Row]]) -> list[Row]:
        """Take the smallest classes out until the others satisfy the models of whole tables; their rows."""
        out: list[Row] = []
        for key in sorted(kept, key=lambda key: len(kept[key])):
            if not any(violates_as_a_whole(model, [len(rows) for rows in kept.values()]) for model in self.models):
                break
            out += kept.pop(key)
        return out

    def _completed(self, out: list[Row], kept: dict[Row, list[Row]], table: list[Any]) -> list[Row]:
        """The suppressed rows with as many of the smallest other classes as they need to satisfy the models."""
        joining = sorted(kept.values(), key=len)
        while joining and self.violates([row[-1] for row in out], table):
            out = out + joining.pop(0)
        return out

    def violates(self, values: list[Any], table: list[Any]) -> bool:
        """Tell whether a class with these sensitive values, in a table with those of `table`, violates a model."""
        return any(_violates(model, values, table) for model in self.models)

    def loss(self, node: Node, weights: Sequence[float], aggregate: str = "geometric") -> float:
        """The quality model `loss`, by its definition."""
        out, size, losses = self.suppressed_rows(node), len(self.rows), []
        kept = list(self.rows)
        for row in out:
            kept.remove(row)
        for i, (hierarchy, level) in enumerate(zip(self.hierarchies, node, strict=True)):
            leaves = len(hierarchy.paths) + any(row[i] is None for row in self.rows)
            shares = [hierarchy.share(hierarchy.label(row[i], level), level, leaves) for row in kept]
            least = size / leaves
            losses.append((sum(shares) + len(out) - least) / (size - least) if leaves > 1 else 0.0)
        pairs = list(zip(losses, weights, strict=True))
        if aggregate == "max":
            return max(loss * weight for loss, weight in pairs)
        if aggregate == "arithmetic":
            return sum(loss * weight for loss, weight in pairs) / sum(weights)
        return math.prod((1 + loss) ** weight for loss, weight in pairs) ** (1 / sum(weights)) - 1

    def best(self, score: Callable[[Node], float]) -> Node | None:
        """The satisfying generalization of the lowest score; of equal ones the lowest, then the first."""
        scores = {node: score(node) for node in self.satisfying()}
        least = min(scores.values(), default=0.0)
        equal = (node for node, value in scores.items() if value <= least + 1e-12 * max(1.0, abs(least)))
        return min(equal, key=lambda node: (sum(node), node), default=None)

    def satisfying(self) -> set[Node]:
        """The generalizations that are within the budget."""
        return {node for node in self.nodes if len(self.suppressed_rows(node)) <= self.budget}


def minimal(nodes: set[Node]) -> set[Node]:
    """Those above no other."""
    return {
        node
        for node in nodes
        if not any(other != node and all(a <= b for a, b in zip(other, node, strict=True)) for other in nodes)
    }


def violates_as_a_whole(model: Model, sizes: Sequence[int]) -> bool:
    """Tell whether a table with classes of these sizes violates a model of whole tables."""
    match model["model"]:
        case "average-risk":
            risks = [Fraction(1, size) for size in sizes for _ in range(size)]
            return bool(risks) and sum(risks) / len(risks) > Fraction(str(model["risk"]))
        case "population-uniqueness":
            return bool(sizes) and zayatz_share(sizes, model["sample_of"]) > model["share"] * (1 + _SLACK)
    return False


def zayatz_share(sizes: Sequence[int], fraction: float) -> float:
    """The share of the population that is alone, as Zayatz estimates it: Bayes's rule with whole numbers."""
    rows, population = sum(sizes), round(sum(sizes) / fraction)
    drawn = [Fraction(size * math.comb(population - size, rows - 1), math.comb(population, rows)) for size in sizes]
    alone = sum(chance for size, chance in zip(sizes, drawn, strict=True) if size == 1)
    return float(sizes.count(1) * alone / sum(drawn) / rows)


def _violates(model: Model, values: list[Any], table: list[Any]) -> bool:
    match model["model"]:
        case "k-anonymity":
            return len(values) < model["k"]
        case "distinct-l-diversity":
            return brute_force.distinct(values) < model["l"]
        case "entropy-l-diversity":
            return brute_force.entropy(values) < math.log(model["l"]) * (1 - _SLACK)
        case "recursive-l-diversity":
            return not brute_force.recursive_ratio(values, model["l"]) < Fraction(str(model["c"]))
        case "variance-diversity":
            return float(brute_force.variance(values)) < model["v"] * (1 - _SLACK)
        case "beta-likeness":
            return brute_force.least_beta(values, table, form=model["form"]) > model["beta"] * (1 + _SLACK)
        case "alpha-k":
            share = brute_force.greatest_share(values, model["k"])
            return share > Fraction(str(model["alpha"]))
        case "confidence-bound":
            return brute_force.greatest_share(values, 1) > Fraction(str(model["confidence"]))
        case "average-risk" | "population-uniqueness":
            return False  # no class by itself violates it
        case "delta-disclosure":
            return not brute_force.disclosed_delta(values, table) < model["delta"] * (1 - _SLACK)
    return float(_distance(model["distance"], values, table)) > model["t"] * (1 + _SLACK)


def _distance(distance: str, values: list[Any], table: list[Any]) -> Any:
    match distance:
        case "equal":
            return brute_force.equal_distance(values, table)
        case "ordered":
            order = sorted(set(table), key=lambda value: (value is not None, value or 0))
            return brute_force.ordered_distance(values, table, order)
        case "hierarchical":
            return brute_force.hierarchical_distance(values, table, {None: ("alone", ROOT), **GROUPS})
    return brute_force.kl_divergence(values, table)


# --- random cases

MODELS: tuple[Model, ...] = (
    {"model": "k-anonymity", "k": 2},
    {"model": "k-anonymity", "k": 3},
    {"model": "distinct-l-diversity", "attribute": "s", "l": 2},
    {"model": "entropy-l-diversity", "attribute": "s", "l": 1.8},
    {"model": "recursive-l-diversity", "attribute": "s", "c": 2, "l": 2},
    {"model": "recursive-l-diversity", "attribute": "s", "c": 1, "l": 3},
    {"model": "variance-diversity", "attribute": "s", "v": 0.5},
    {"model": "t-closeness", "attribute": "s", "distance": "equal", "t": 0.3},
    {"model": "t-closeness", "attribute": "s", "distance": "ordered", "t": 0.2},
    {"model": "t-closeness", "attribute": "s", "distance": "hierarchical", "t": 0.2},
    {"model": "t-closeness", "attribute": "s", "distance": "kl", "t": 0.4},
    {"model": "beta-likeness", "attribute": "s", "form": "enhanced", "beta": 1.3},
    {"model": "beta-likeness", "attribute": "s", "form": "basic", "beta": 0.9},
    {"model": "delta-disclosure", "attribute": "s", "delta": 1.7},
    {"model": "alpha-k", "attribute": "s", "alpha": 0.6, "k": 2},
    {"model": "confidence-bound", "attribute": "s", "confidence": 0.7},
)


TABLE_MODELS: tuple[Model, ...] = (
    {"model": "average-risk", "risk": 0.5},
    {"model": "average-risk", "risk": 0.34},
    {"model": "average-risk", "risk": 0.2},
    {"model": "population-uniqueness", "share": 0.02, "sample_of": 0.25, "estimator": "zayatz"},
    {"model": "population-uniqueness", "share": 0.0, "sample_of": 0.1, "estimator": "zayatz"},
)
"""Models that judge a release as a whole, by the sizes of its classes."""


def pick_models(name: str, *more: str) -> tuple[Model, ...]:
    """Pick models by name; of t-closeness by distance."""
    wanted = {name, *more}
    return tuple(dict(one) for one in MODELS if one.get("distance", one["model"]) in wanted)


@st.composite
def hierarchies(draw: st.DrawFn) -> Hierarchy:
    """A random tree over two to six letters: each level merges neighbours of the one below; the last is the root."""
    leaves = LETTERS[: draw(st.integers(2, 6))]
    groups: list[tuple[str, ...]] = [tuple(leaves)]
    for level in range(1, draw(st.integers(0, 2)) + 1):
        labels, last = [], len(set(groups[-1]))
        merged = draw(st.lists(st.booleans(), min_size=last, max_size=last))
        number = -1
        places = {label: n for n, label in enumerate(dict.fromkeys(groups[-1]))}
        numbers = {}
        for label, place in places.items():
            number += 0 if merged[place] and number >= 0 else 1
            numbers[label] = f"g{level}{number}"
        labels = [numbers[label] for label in groups[-1]]
        groups.append(tuple(labels))
    return Hierarchy({leaf: (*(level[i] for level in groups[1:]), ROOT) for i, leaf in enumerate(leaves)})


@st.composite
def cases(
    draw: st.DrawFn,
    models: Sequence[Model] = MODELS,
    most_rows: int = 24,
    budgets: Sequence[float] = (0.0, 0.0, 0.1, 0.25, 0.5),
) -> Case:
    """A random case with one or two models."""
    trees = tuple(draw(st.lists(hierarchies(), min_size=1, max_size=3)))
    values = [st.sampled_from([None, *h.paths]) for h in trees]
    row = st.tuples(*values, st.sampled_from([None, 1, 1, 2, 3, 4]))
    return Case(
        hierarchies=trees,
        rows=tuple(draw(st.lists(row, min_size=3, max_size=most_rows))),
        models=tuple(draw(st.lists(st.sampled_from(list(models)), min_size=1, max_size=2, unique_by=str))),
        suppression=draw(st.sampled_from(list(budgets))),
        suppressed=draw(st.sampled_from(["omit", "star"])),
    )


# --- cases made for what searches conclude without looking


OPEN_MODELS: tuple[Model, ...] = (
    {"model": "entropy-l-diversity", "attribute": "s", "l": 1.8},
    {"model": "recursive-l-diversity", "attribute": "s", "c": 2, "l": 2},
    {"model": "variance-diversity", "attribute": "s", "v": 0.5},
    {"model": "t-closeness", "attribute": "s", "distance": "equal", "t": 0.3},
    {"model": "t-closeness", "attribute": "s", "distance": "ordered", "t": 0.2},
    {"model": "t-closeness", "attribute": "s", "distance": "hierarchical", "t": 0.2},
    {"model": "t-closeness", "attribute": "s", "distance": "kl", "t": 0.4},
)
"""The models under which a class that satisfies one may violate it once other rows join."""


def vouches_wrongly(case: Case) -> bool:
    """Tell whether some generalization satisfies the models, and one above it does not."""
    satisfying = case.satisfying()
    return any(
        all(a <= b for a, b in zip(one, other, strict=True))
        for one in satisfying
        for other in case.nodes
        if other not in satisfying
    )


def cascades(case: Case) -> bool:
    """Tell whether leaving out classes makes others violate a model, at a generalization near the budget."""
    if case.suppressed == "star":
        return False
    for node in case.nodes:
        table = [row[-1] for row in case.rows]
        classes = ([row[-1] for row in rows] for rows in case.classes(node).values())
        first = sum(len(values) for values in classes if case.violates(values, table))
        if 0 < first <= case.budget and len(case.suppressed_rows(node)) > first:
            return True
    return False


def judged_cases() -> st.SearchStrategy[Case]:
    """Cases whose suppressed rows are judged as a class; by their number alone, so that ties don't matter."""
    models = [model for model in MODELS if model["model"] == "k-anonymity"]
    drawn = cases([*models, {"model": "k-anonymity", "k": 4}], budgets=[0.25, 0.5])
    whole = drawn.filter(lambda case: all(model["k"] <= len(case.rows) for model in case.models))
    return whole.map(lambda case: replace(case, suppressed="judged star"))


@st.composite
def skewed_cases(draw: st.DrawFn, models: Sequence[Model] = OPEN_MODELS, suppressed: str | None = None) -> Case:
    """A random case in which sensitive values go with the first quasi-identifier, one model, and a wide budget."""
    trees = tuple(draw(st.lists(hierarchies(), min_size=1, max_size=2)))
    random = draw(st.randoms(use_true_random=False))
    pools = {value: random.choice([(1,), (1, 2), (3, 4), (1, 3), (1, 2, 3, 4)]) for value in trees[0].paths}
    rows = []
    for _ in range(random.randint(10, 24)):
        cells = [random.choice(list(tree.paths)) for tree in trees]
        rows.append((*cells, random.choice(pools[cells[0]])))
    return Case(
        hierarchies=trees,
        rows=tuple(rows),
        models=(random.choice(list(models)),),
        suppression=random.choice([0.1, 0.25, 0.4, 0.6]),
        suppressed=suppressed or random.choice(["omit", "star"]),
    )


def shifting_cases(models: Sequence[Model] = OPEN_MODELS) -> st.SearchStrategy[Case]:
    """Cases in which a generalization that satisfies the models does not vouch for those above."""
    return skewed_cases(models).filter(vouches_wrongly)


def cascading_cases() -> st.SearchStrategy[Case]:
    """Cases in which suppression moves the distribution that the remaining classes are compared with."""
    return skewed_cases(OPEN_MODELS[3:], suppressed="omit").filter(cascades)


def overrules(case: Case, lost: Callable[[list[Any]], int]) -> bool:
    """Tell whether some generalization within the budget suppresses fewer rows than what is said of one above it.

    lost: a class's rows that every more specific generalization is said to suppress, by the class's sensitive values.
    """
    suppressed = {node: len(case.suppressed_rows(node)) for node in case.nodes}
    table = [row[-1] for row in case.rows]
    for node in case.nodes:
        classes = ([row[-1] for row in rows] for rows in case.classes(node).values())
        said = sum(lost(values) for values in classes if case.violates(values, table))
        within = (other for other in case.nodes if all(a <= b for a, b in zip(other, node, strict=True)))
        if any(suppressed[other] < said for other in within if suppressed[other] <= case.budget):
            return True
    return False


def overruled_cases(models: Sequence[Model]) -> st.SearchStrategy[Case]:
    """Cases in which a class that violates a model need not be suppressed whole further down."""
    return skewed_cases(models).filter(lambda case: overrules(case, len))


def skips_heights(case: Case) -> bool:
    """Tell whether generalizations satisfy the models at some height, and none at the first one that Samarati tries."""
    heights = {sum(node) for node in case.satisfying()}
    low, high = sum(case.nodes[0]), sum(case.nodes[-1])
    return bool(heights) and (low + high) // 2 not in heights and min(heights) < (low + high) // 2


def prefers_higher(case: Case) -> bool:
    """Tell whether the generalization of the least loss is not of the least height."""
    best = case.best(lambda node: case.loss(node, [1.0] * len(case.names)))
    return best is not None and sum(best) > min(map(sum, case.satisfying()))


def gapped_cases() -> st.SearchStrategy[Case]:
    """Cases in which generalizations satisfy the models at a height below one where none does."""
    return skewed_cases().filter(skips_heights)
