"""Classification accuracy on Adult of trees that are grown on differentially private releases, as KDD 2011 plots it.

python benchmarks/private_utility.py ../shared/data/adult/adult14.csv                        all combinations, in parts
python benchmarks/private_utility.py …/adult14.csv --splits 3 --epsilon 1 --rounds 4 10      some of them
python benchmarks/private_utility.py …/adult14.csv --epsilon --k 10 100                      k-anonymity alone

The 30,162 rows without an unknown value are divided at random into two thirds, from which a release of `diffgen` is
drawn, and a third, on which a decision tree is tested that knows the released cells and their noisy counts alone. Its
features are the groups that a value is shown by: their order of numbers, one indicator each of categories. `all cells`
is a tree that is grown on all of them; `threshold` one on those counts alone that noise of an empty cell reaches with a
probability of one by the number of cells, which leaves about one empty cell in the release. `top-down` is TDS, which
takes hierarchies apart by information gain for as long as all classes have k rows.
"""

from __future__ import annotations

import argparse
import bisect
import csv
import math
import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from private_plans import PlainWorkspace, QuickNoise, draw_release, plan_release
from sklearn.tree import DecisionTreeClassifier

from sqlanon import anonymize
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.mechanisms.mechanisms import secret_key
from sqlanon.methods.differential_privacy.drawing.accounting import schedule_of
from sqlanon.methods.differential_privacy.drawing.counting import Places
from sqlanon.methods.differential_privacy.drawing.drawing import DrawnCounts
from sqlanon.methods.differential_privacy.plan import PrivatePlan
from sqlanon.methods.differential_privacy.public_domain import NumberDomain
from sqlanon.sql import Relation, Statement

Numbers = NDArray[Any]
DOMAINS: dict[str, tuple[int, int, int]] = {
    "age": (17, 91, 1),
    "fnlwgt": (10_000, 1_500_000, 10_000),
    "education-num": (1, 17, 1),
    "capital-gain": (0, 100_000, 100),
    "capital-loss": (0, 4_400, 50),
    "hours-per-week": (1, 100, 1),
}
TAXONOMIES = ("workclass", "education", "marital-status", "occupation", "race", "sex", "native-country")
RELATIONSHIPS = ["Husband", "Not-in-family", "Other-relative", "Own-child", "Unmarried", "Wife"]
INTERVALS: dict[str, list[int]] = {
    "age": [5, 10, 20, 40],
    "fnlwgt": [50_000, 100_000, 200_000, 400_000],
    "education-num": [2, 4, 8],
    "capital-gain": [1_000, 5_000, 10_000, 50_000],
    "capital-loss": [250, 500, 1_000, 2_000],
    "hours-per-week": [5, 10, 20, 40],
}
CLASSES = ["<=50K", ">50K"]
TARGET = "salary-class"


@dataclass(frozen=True)
class Split:
    """A random division of the rows: their places in the public domains, and their classes.

    table: of the rows that releases are drawn from. rows, others: the values of these, and of those that are predicted.
    """

    table: str
    rows: list[list[Any]]
    others: list[list[Any]]
    train: Numbers
    train_classes: Numbers
    test: Numbers
    test_classes: Numbers


class Adult:
    """The table in a database, and its division into two thirds and a third."""

    def __init__(self, file: Path) -> None:
        self.engine = connect("duckdb:///:memory:")
        self.workspace = PlainWorkspace(self.engine)
        with file.open(encoding="utf-8") as lines:
            header, *rows = ([cell.strip() for cell in line] for line in csv.reader(lines) if line)
        self.names = header
        self.rows = [
            [int(c) if n in DOMAINS else c for n, c in zip(header, row, strict=True)] for row in rows if "?" not in row
        ]
        self.directory = file.parent

    def create(self, engine: Engine, table: str) -> None:
        """Create an empty table of these columns in the database of an engine."""
        kinds = ", ".join(f'"{name}" {"INTEGER" if name in DOMAINS else "VARCHAR"} NOT NULL' for name in self.names)
        engine.execute(Statement("create", f"CREATE TABLE {table} ({kinds})"))

    def divide(self, number: int) -> Split:
        """Make the tables of a division."""
        order = np.random.default_rng(number).permutation(len(self.rows))
        middle = len(order) * 2 // 3
        sides = []
        for table, part in ((f"train_{number}", order[:middle]), (f"test_{number}", order[middle:])):
            self.create(self.engine, table)
            self.engine.load(Relation(table), self.names, [self.rows[place] for place in part])
            found = self.places(self.plan(table, name="contingency"))
            sides += [found[:, :-1], found[:, -1]]
        rows, others = ([self.rows[place] for place in part] for part in (order[:middle], order[middle:]))
        return Split(f"train_{number}", rows, others, *sides)

    def places(self, plan: PrivatePlan) -> Numbers:
        """The rows of a plan's table as places of its domains, the class last."""
        placed = Places.of(self.engine, self.workspace, plan, secret_key()).rows
        found = np.array(self.engine.fetch(Statement("places", self.engine.traits.renderer().written(placed))))
        self.workspace.drop(self.workspace.table("places"))
        return found

    def plan(
        self,
        table: str,
        epsilon: float = 1,
        *,
        domains: Mapping[str, tuple[int, int, int]] = DOMAINS,
        columns: Collection[str] = (),
        **algorithm: Any,
    ) -> PrivatePlan:
        """Plan a release of some columns, or of all."""
        attributes: dict[str, Any] = {
            name: {"domain": {"from": first, "below": below, "step": step}}
            for name, (first, below, step) in domains.items()
        }
        for name in TAXONOMIES:
            taxonomy = {"csv": str(self.directory / f"adult_hierarchy_{name}.csv"), "unknown": "OTHER"}
            attributes[name] = {"hierarchy": taxonomy}
        attributes["relationship"] = {"values": RELATIONSHIPS}
        roles: dict[str, Any] = {
            name: {"role": "quasi-identifier", **one} if not columns or name in columns else {"role": "identifier"}
            for name, one in attributes.items()
        }
        roles[TARGET] = {"role": "sensitive", "values": CLASSES}
        return plan_release(self.engine, table, roles, {"target": TARGET, **algorithm}, epsilon)

    def generalize(self, split: Split, k: int, names: Collection[str]) -> Any:
        """Anonymize some columns by TDS; a frame of the release, in which `row` tells the row of each."""
        attributes: dict[str, Any] = {name: {"hierarchy": {"intervals": INTERVALS[name]}} for name in DOMAINS}
        for name in TAXONOMIES:
            attributes[name] = {"hierarchy": {"csv": str(self.directory / f"adult_hierarchy_{name}.csv")}}
        attributes["relationship"] = {"hierarchy": "suppress"}
        roles: dict[str, Any] = {
            name: {"role": "quasi-identifier", **one} if name in names else {"role": "identifier"}
            for name, one in attributes.items()
        }
        frame = pd.DataFrame(split.rows, columns=self.names).assign(row=range(len(split.rows)))
        policy = {
            "subject": "none",
            "attributes": roles | {TARGET: {"role": "insensitive"}, "row": {"role": "insensitive"}},
            "privacy": [{"model": "k-anonymity", "k": k}],
            "algorithm": {"name": "top-down", "quality": "information-gain", "target": TARGET},
        }
        with anonymize(frame, policy) as released:
            return released.df().sort_values("row")

    def draw(self, plan: PrivatePlan) -> DrawnCounts:
        return draw_release(self.engine, self.workspace, plan, QuickNoise())


def accuracies(plan: PrivatePlan, drawn: DrawnCounts, split: Split) -> tuple[float, float]:
    """The shares of test rows whose class trees predict from all released cells, and from those above a threshold."""
    *cut, _ = drawn.counts.cut
    counts = np.maximum([count for _, count in drawn.counts.counts], 0)
    lookup = [np.repeat(range(len(nodes)), [node.high - node.low for node in nodes]) for nodes in cut]
    tested = np.stack([lookup[number][split.test[:, number]] for number in range(len(cut))], axis=1)
    scale = float(1 / schedule_of(plan).counts)
    threshold = math.ceil(scale * math.log(counts.size / (1 + math.exp(-1 / scale))))
    found = []
    for kept in (counts, np.where(counts >= threshold, counts, 0)):
        shown = np.flatnonzero(kept)
        groups = np.stack(np.unravel_index(shown // len(CLASSES), [len(nodes) for nodes in cut]), axis=1)
        known, wanted = (_features(plan, one, [len(nodes) for nodes in cut]) for one in (groups, tested))
        if not len(shown):  # nothing is known of the classes: the first one is as good as any
            known, shown = np.zeros((1, wanted.shape[1])), np.zeros(1, dtype=int)
        tree = DecisionTreeClassifier(criterion="entropy", random_state=0)
        tree.fit(known, shown % len(CLASSES), sample_weight=np.maximum(kept[shown], 1))
        found.append(float(np.mean(tree.predict(wanted) == split.test_classes)))
    return found[0], found[1]


def accuracy_of_labels(names: Sequence[str], released: Any, split: Split) -> float:
    """The share of test rows whose class a tree predicts that knows the labels of the release's rows."""
    known, tested = [], []
    for column, name in enumerate(names):
        if name == TARGET or name not in released.columns:
            continue
        values = np.array([row[column] for row in split.rows])
        shown = dict(zip(values.tolist(), released[name].astype(str), strict=True))
        ordered = sorted(shown)  # a value that no row has is shown as the one before it
        wanted = [max(0, bisect.bisect_right(ordered, row[column]) - 1) for row in split.others]
        numbers = {label: number for number, label in enumerate(dict.fromkeys(shown[value] for value in ordered))}
        groups = [np.array([numbers[shown[value]] for value in values.tolist()])[:, None]]
        groups.append(np.array([numbers[shown[ordered[place]]] for place in wanted])[:, None])
        if len(numbers) > 1:
            for side, group in zip((known, tested), groups, strict=True):
                side.append(group if name in DOMAINS else group == np.arange(len(numbers)))
    tree = DecisionTreeClassifier(criterion="entropy", random_state=0, min_samples_leaf=30)
    tree.fit(np.hstack(known), split.train_classes)
    return float(np.mean(tree.predict(np.hstack(tested)) == split.test_classes))


def unanonymized(plan: PrivatePlan, split: Split) -> float:
    """The accuracy of a tree that knows the rows, with leaves of 30 and more."""
    sizes = [domain.size for domain in plan.domains.values()]
    known, tested = (_features(plan, one, sizes) for one in (split.train, split.test))
    tree = DecisionTreeClassifier(criterion="entropy", random_state=0, min_samples_leaf=30)
    return float(np.mean(tree.fit(known, split.train_classes).predict(tested) == split.test_classes))


def _features(plan: PrivatePlan, groups: Numbers, sizes: Sequence[int]) -> Numbers:
    columns = [
        groups[:, [number]] if isinstance(domain, NumberDomain) else groups[:, [number]] == np.arange(size)
        for number, (size, domain) in enumerate(zip(sizes, plan.domains.values(), strict=True))
        if size > 1
    ]
    return np.hstack(columns).astype(np.float32) if columns else np.zeros((len(groups), 1), dtype=np.float32)


def combinations(given: argparse.Namespace) -> Iterator[tuple[float, int, str, str]]:
    for variant in given.variant:
        for score in given.score:
            for epsilon in given.epsilon:
                for rounds in given.rounds:
                    yield epsilon, rounds, score, variant


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--cells", type=int, default=100_000)
    parser.add_argument("--k", type=int, nargs="*", default=[2, 5, 10, 25, 50, 100, 250])
    parser.add_argument("--leave-out", nargs="*", default=[], help="Columns that k-anonymity leaves out.")
    parser.add_argument("--epsilon", type=float, nargs="*", default=[0.1, 0.25, 0.5, 1])
    parser.add_argument("--rounds", type=int, nargs="+", default=[4, 7, 10, 13, 16])
    parser.add_argument("--score", nargs="+", default=["max", "information-gain"])
    parser.add_argument("--variant", nargs="+", default=["joint", "published"])
    given = parser.parse_args()
    adult = Adult(given.file)
    splits = [adult.divide(number) for number in range(given.splits)]
    common = [max(float(np.mean(one.test_classes == place)) for place in range(len(CLASSES))) for one in splits]
    raw = [unanonymized(adult.plan(one.table, name="contingency"), one) for one in splits]
    print(
        f"{len(adult.rows):,} rows, {given.splits} splits; most common class {percent(common)},"
        f" unanonymized {percent(raw)}\n"
    )
    if given.k:
        print("| algorithm | k | accuracy |\n| --- | ---: | ---: |")
    names = [name for name in adult.names if name not in given.leave_out]
    for k in given.k:
        measured = [accuracy_of_labels(adult.names, adult.generalize(one, k, names), one) for one in splits]
        print(f"| top-down | {k} | {percent(measured)} |", flush=True)
    if not given.epsilon:
        return
    print("\n| variant | score | epsilon | rounds | all cells | threshold |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for epsilon, rounds, score, variant in combinations(given):
        options = {"name": "diffgen", "score": score, "variant": variant, "specializations": rounds}
        options["cells"] = given.cells
        plans = [adult.plan(one.table, epsilon, **options) for one in splits]
        measured = [accuracies(plan, adult.draw(plan), one) for plan, one in zip(plans, splits, strict=True)]
        shown = " | ".join(map(percent, zip(*measured, strict=True)))
        print(f"| {variant} | {score} | {epsilon:g} | {rounds} | {shown} |", flush=True)


def percent(shares: Sequence[float]) -> str:
    """The mean of shares and their standard deviation."""
    spread = statistics.stdev(shares) if len(shares) > 1 else 0.0
    return f"{100 * statistics.mean(shares):.1f} ± {100 * spread:.1f}"


if __name__ == "__main__":
    main()
