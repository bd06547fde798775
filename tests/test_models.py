"""The measures of the privacy models against their definitions in plain Python, on both engines."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.models import (
    AlphaK,
    BetaLikeness,
    ConfidenceBound,
    DeltaDisclosure,
    DeltaPresence,
    DistinctLDiversity,
    EntropyLDiversity,
    Groups,
    KAnonymity,
    PrivacyModel,
    RecursiveLDiversity,
    VarianceDiversity,
)
from sqlanon.models.base import Runs
from sqlanon.models.closeness import DISTANCES
from sqlanon.sql import Statement
from tests.models_support import (
    HEIGHT,
    MANY,
    Classes,
    Measures,
    ancestors,
    codes_of,
    insert,
    load,
    measure,
    order_of,
    partitions,
    table_of,
    thresholds,
)
from tests.oracle import brute_force
from tests.random_cases import many

pytestmark = pytest.mark.slow


def close(left: float, right: float) -> bool:
    return left == right or math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-10)


def check(engine: Engine, model: PrivacyModel, classes: Classes, expected: Callable[[list[Any]], float]) -> Measures:
    """Every class's measure is what the definition says; the verdicts are returned."""
    found = measure(engine, model, load(engine, classes))
    assert found.keys() == classes.keys()
    for class_, part in classes.items():
        assert close(found[class_][0], expected(part)), (class_, part)
    return found


@MANY
@given(classes=partitions, k=st.integers(1, 6))
def test_k_anonymity(engine: Engine, classes: Classes, k: int) -> None:
    found = check(engine, KAnonymity(k), classes, len)
    assert all(violates == (len(classes[c]) < k) for c, (_, violates) in found.items())


@MANY
@given(
    counted=st.dictionaries(st.integers(0, 9), st.tuples(st.integers(1, 20), st.integers(0, 60)), min_size=1),
    maximum=st.sampled_from([0.1, 0.3, 0.3333333333333333, 0.5, 2 / 3, 0.9]) | st.floats(1e-9, 1, exclude_max=True),
    least=st.sampled_from([None, 1 / 12, 0.1, 0.3, 1 / 3]) | st.floats(1e-9, 0.5),
    far=st.integers(0, 1),
)
@example(counted={0: (1, 3), 1: (3, 10), 2: (2, 0)}, maximum=0.3333333333333333, least=None, far=0)
@example(counted={0: (3, 10), 1: (4, 10), 2: (6, 20)}, maximum=0.3, least=0.3, far=0)
@example(counted={0: (3, 10), 1: (6, 19), 2: (20, 60)}, maximum=0.3, least=1 / 3, far=1)
@example(counted={0: (10, 12), 1: (5, 6), 2: (1, 10), 3: (0, 7)}, maximum=0.9, least=0.8333333333333334, far=0)
def test_delta_presence(
    engine: Engine, counted: dict[int, tuple[int, int]], maximum: float, least: float | None, far: int
) -> None:
    """`far` makes all counts large, one row of each class besides. A minimum above the maximum is refused before."""
    least = None if least is None else min(least, maximum)
    scale = 10**8 if far else 1
    counted = {c: (n * scale + far, members * scale) for c, (n, members) in counted.items()}
    for name, place in (("test_released", 0), ("test_members", 1)):
        engine.execute(Statement("test", f"DROP TABLE IF EXISTS {name}"))
        engine.execute(Statement("test", f"CREATE TABLE {name} (class BIGINT, n BIGINT)"))
        insert(engine, name, ["class", "n"], [(c, one[place]) for c, one in counted.items() if one[place] or not place])
    rows = sum(n for n, _ in counted.values())
    groups = Groups(Markup("test_released"), None, None, rows, population=Markup("test_members"))
    found = measure(engine, DeltaPresence(maximum, "people", least), groups)
    assert found.keys() == counted.keys()
    for c, (n, members) in counted.items():
        share = Fraction(n, members) if members else math.inf
        assert found[c] == (float(share), share > Fraction(str(maximum)) or share < Fraction(str(least or 0)))


@MANY
@given(classes=partitions, least=st.integers(1, 5), counts_null=st.booleans())
@example(classes={0: [None, None]}, least=1, counts_null=False)
def test_distinct_diversity(engine: Engine, classes: Classes, least: int, counts_null: bool) -> None:
    def distinct(part: list[Any]) -> int:
        return brute_force.distinct(part, counts_null=counts_null)

    found = check(engine, DistinctLDiversity("s", least, counts_null=counts_null), classes, distinct)
    assert all(violates == (distinct(classes[c]) < least) for c, (_, violates) in found.items())


@MANY
@given(classes=partitions, least=st.sampled_from([1.0, 1.5, 2.0, 3.0, 4.0]), counts_null=st.booleans())
def test_entropy_diversity(engine: Engine, classes: Classes, least: float, counts_null: bool) -> None:
    def entropy(part: list[Any]) -> float:
        return brute_force.entropy(part, counts_null=counts_null)

    model = EntropyLDiversity("s", least, counts_null=counts_null)
    found = check(engine, model, classes, lambda part: math.exp(entropy(part)))
    for c, (_, violates) in found.items():
        assert violates == (entropy(classes[c]) < math.log(least) - 1e-9)


@MANY
@given(classes=partitions, c=thresholds, least=st.integers(1, 4), counts_null=st.booleans())
@example(classes={0: [0] * 11 + [1] * 10}, c=1.1, least=2, counts_null=False)
@example(classes={0: [0] * 11 + [1] * 10}, c=1.1000000000000003, least=2, counts_null=False)
@example(classes={0: [0] * 7 + [1] * 10 + [None] * 4}, c=1.1, least=2, counts_null=False)
def test_recursive_diversity(engine: Engine, classes: Classes, c: float, least: int, counts_null: bool) -> None:
    """Violated from c on, as c is written: neither its nearest double nor a rounded product decides a tie."""

    def ratio(part: list[Any]) -> Fraction | float:
        return brute_force.recursive_ratio(part, least, counts_null=counts_null)

    found = check(
        engine, RecursiveLDiversity("s", c, least, counts_null=counts_null), classes, lambda part: float(ratio(part))
    )
    for class_, (_, violates) in found.items():
        assert violates == (ratio(classes[class_]) >= Fraction(str(c)))


def completions(part: Sequence[int | None]) -> Iterator[list[int | None]]:
    """The class with every way of giving its NULLs to values, known in it or not."""
    known = [value for value in part if value is not None]
    strangers = range(100, 100 + len(part) - len(known))
    for chosen in itertools.combinations_with_replacement({*known, *strangers}, len(strangers)):
        yield [*known, *chosen]


some_nulls = st.lists(st.one_of(st.none(), st.integers(0, 2)), min_size=1, max_size=7)


@settings(max_examples=many(200), deadline=None)
@given(part=some_nulls, other=some_nulls, least=st.integers(1, 3))
def test_nulls_are_the_worst_that_they_can_be_and_merging_does_no_harm(
    part: list[int | None], other: list[int | None], least: int
) -> None:
    """The models take NULLs for the worst of all values; a union measures no worse than its worse part."""
    both = [*part, *other]
    strict = {"counts_null": True}
    assert brute_force.entropy(part) == pytest.approx(min(brute_force.entropy(c, **strict) for c in completions(part)))
    ratios = [brute_force.recursive_ratio(c, least, **strict) for c in completions(part)]
    assert brute_force.recursive_ratio(part, least) == max(ratios)
    assert brute_force.distinct(both) >= min(map(brute_force.distinct, (part, other)))
    assert brute_force.entropy(both) >= min(map(brute_force.entropy, (part, other))) - 1e-12
    worse = max(brute_force.recursive_ratio(part, least), brute_force.recursive_ratio(other, least))
    assert brute_force.recursive_ratio(both, least) <= worse


@MANY
@given(classes=partitions, c=thresholds, least=st.integers(1, 4), times=st.sampled_from([1, 7, 2**33]))
def test_rows_that_must_go_until_a_class_is_recursively_diverse(
    engine: Engine, classes: Classes, c: float, least: int, times: int
) -> None:
    """The fewest rows of the most frequent value; the counts of a wide table need wide integers."""
    groups = load(engine, classes)
    engine.execute(Statement("test", f"UPDATE test_avs SET n = n * {times}"))
    groups = replace(groups, rows=groups.rows * times)
    statement = RecursiveLDiversity("s", c, least).measure(engine.render, groups)
    violating = f"SELECT m.class, m.lost FROM ({statement}) AS m WHERE m.violates"
    for class_, lost in engine.fetch(Statement("test", violating)):
        completed = brute_force.completed(classes[class_])
        counts = sorted((n * times for n in Counter(completed).values()), reverse=True)
        bound = Fraction(str(c)) * sum(counts[least - 1 :])
        assert (lost is None) if not bound else counts[0] - lost < bound <= counts[0] - lost + 1


@pytest.mark.parametrize("distance", DISTANCES)
@MANY
@given(classes=partitions, t=st.sampled_from([0.0, 0.1, 0.25, 0.5]))
def test_closeness(engine: Engine, distance: str, classes: Classes, t: float) -> None:
    table, order = table_of(classes), order_of(classes)
    hierarchy = {value: ancestors(value) for value in order}
    definitions: dict[str, Callable[[list[Any]], Any]] = {
        "equal": lambda part: brute_force.equal_distance(part, table),
        "ordered": lambda part: brute_force.ordered_distance(part, table, order),
        "hierarchical": lambda part: brute_force.hierarchical_distance(part, table, hierarchy),
        "kl": lambda part: brute_force.kl_divergence(part, table),
    }
    distance_of = definitions[distance]
    found = check(engine, DISTANCES[distance]("s", t), classes, lambda part: float(distance_of(part)))
    for c, (_, violates) in found.items():
        assert violates == (float(distance_of(classes[c])) > t + 1e-9)


@pytest.mark.parametrize("form", ["basic", "enhanced"])
@MANY
@given(classes=partitions, beta=st.sampled_from([0.1, 0.5, 1.0, 2.5, 50.0]))
@example(classes={0: [1, 1, 1, 2], 1: [1, 1, 1, 1]}, beta=1.0)
def test_beta_likeness(engine: Engine, form: str, classes: Classes, beta: float) -> None:
    table = table_of(classes)

    def least(part: list[Any]) -> float:
        return brute_force.least_beta(part, table, form=form)

    found = check(engine, BetaLikeness("s", beta, form), classes, least)
    for c, (_, violates) in found.items():
        assert violates == (least(classes[c]) > beta * (1 + 1e-9))


@MANY
@given(classes=partitions, delta=st.sampled_from([0.1, 0.585, 1.0, 2.0, 5000.0]))
@example(classes={0: [1, 1, 2, None], 1: [1, 2, 2, None]}, delta=1.0)
def test_delta_disclosure(engine: Engine, classes: Classes, delta: float) -> None:
    table = table_of(classes)

    def disclosed(part: list[Any]) -> float:
        return brute_force.disclosed_delta(part, table)

    found = check(engine, DeltaDisclosure("s", delta), classes, disclosed)
    for c, (_, violates) in found.items():
        assert violates == (not disclosed(classes[c]) < delta * (1 - 1e-9))


@MANY
@given(
    classes=partitions,
    alpha=st.sampled_from([0.1, 0.3, 0.5, 1 / 3, 0.7, 1.0, 1e-300]) | st.floats(1e-3, 1),
    k=st.integers(1, 4),
    named=st.none() | st.sets(st.integers(-3, 5), min_size=1, max_size=2),
    counts_null=st.booleans(),
)
@example(classes={0: [1] * 3 + [2] * 7}, alpha=0.3, k=1, named={1}, counts_null=False)
@example(classes={0: [1] * 3 + [2] * 7}, alpha=0.29999999999999993, k=1, named={1}, counts_null=False)
@example(classes={0: [None, None]}, alpha=0.5, k=1, named=None, counts_null=False)
def test_alpha_k(
    engine: Engine, classes: Classes, alpha: float, k: int, named: set[int] | None, counts_null: bool
) -> None:
    """Violated beyond alpha as it is written, or below k rows."""
    values = None if named is None else tuple(str(value) for value in sorted(named))
    model = AlphaK("s", alpha, k, values, counts_null=counts_null)

    def share(part: list[Any]) -> Fraction | float:
        return brute_force.greatest_share(part, k, None if named is None else sorted(named), counts_null=counts_null)

    found = check(engine, model, classes, lambda part: float(share(part)))
    for c, (_, violates) in found.items():
        assert violates == (share(classes[c]) > Fraction(str(alpha)))
        assert violates or len(classes[c]) >= model.least_rows


@MANY
@given(
    classes=partitions,
    confidence=st.sampled_from([0.1, 0.5, 1 / 3, 0.7, 1.0]),
    named=st.none() | st.sets(st.integers(-3, 5), min_size=1, max_size=2),
    counts_null=st.booleans(),
)
def test_confidence_bound(
    engine: Engine, classes: Classes, confidence: float, named: set[int] | None, counts_null: bool
) -> None:
    """Violated where some rule from a class to a value has more than the confidence, however few rows it has."""
    values = None if named is None else tuple(str(value) for value in sorted(named))
    model = ConfidenceBound("s", confidence, values, counts_null=counts_null)

    def share(part: list[Any]) -> Fraction | float:
        return brute_force.greatest_share(part, 1, None if named is None else sorted(named), counts_null=counts_null)

    found = check(engine, model, classes, lambda part: float(share(part)))
    for c, (_, violates) in found.items():
        assert violates == (share(classes[c]) > Fraction(str(confidence)))


models_of_shares = st.sampled_from(
    [
        BetaLikeness("s", 0.6, "basic"),
        BetaLikeness("s", 0.6),
        BetaLikeness("s", 2.0),
        DeltaDisclosure("s", 0.8),
        AlphaK("s", 0.4, 2),
        AlphaK("s", 1.0, 3),
        AlphaK("s", 0.3, 2, ("1", "3")),
        AlphaK("s", 0.5, 1, ("2",), counts_null=True),
    ]
)


@MANY
@given(classes=partitions, model=models_of_shares)
@example(classes={0: [1, 1, 1, 2], 1: [1, 2, 2, 2]}, model=BetaLikeness("s", 0.2, "basic"))
@example(classes={0: [1, 1, 1, 2], 1: [1, 2, 2, 2]}, model=DeltaDisclosure("s", 0.4))
def test_no_part_that_satisfies_a_model_of_shares_has_more_rows_than_are_kept(
    engine: Engine, classes: Classes, model: PrivacyModel
) -> None:
    """The least rows that a violating class must lose are a lower bound on what every part of it lost."""
    groups = load(engine, classes)
    least = engine.traits.renderer().written(model.min_suppressed())
    statement = (
        f"SELECT x.class, {least} FROM {groups.classes} AS x"
        f" JOIN ({model.measure(engine.render, groups)}) AS m ON m.class = x.class WHERE m.violates"
    )
    table = table_of(classes)
    for class_, lost in engine.fetch(Statement("test", statement)):
        counts = Counter(classes[class_])
        for sizes in itertools.product(*(range(n + 1) for n in counts.values())):
            part = [value for value, n in zip(counts, sizes, strict=True) for _ in range(n)]
            if part and _meets(model, part, table):
                assert counts.total() - len(part) >= lost


@MANY
@given(
    rows=st.lists(st.tuples(st.integers(0, 9), st.one_of(st.none(), st.integers(1, 3))), min_size=2, max_size=30),
    joined=st.lists(st.one_of(st.none(), st.integers(1, 4)), max_size=9),
    model=models_of_shares,
)
@example(rows=[(size, None) for size in range(5)], joined=[], model=BetaLikeness("s", 0.6))
def test_shares_are_followed_as_rows_join(
    engine: Engine, rows: list[tuple[int, int | None]], joined: list[int | None], model: PrivacyModel
) -> None:
    """At every size of a run the model decides as the definition does, but for figures at the threshold itself."""
    run = sorted(rows, key=lambda row: row[0])
    table = [value for _, value in run] + joined
    groups = load(engine, {0: table})
    codes, upto, cells, sizes = codes_of(table), Counter[int | None](), [], {}
    for _, group in itertools.groupby(run, key=lambda row: row[0]):
        counts = Counter(value for _, value in group)
        upto.update(counts)
        sizes[upto.total()] = list(upto.elements())
        cells.extend((0, upto.total(), codes[value], n, upto[value]) for value, n in counts.items())
    engine.execute(Statement("test", "DROP TABLE IF EXISTS test_runs"))
    engine.execute(Statement("test", "CREATE TABLE test_runs (run INT, size BIGINT, s BIGINT, n BIGINT, upto BIGINT)"))
    insert(engine, "test_runs", ["run", "size", "s", "n", "upto"], cells)
    assert isinstance(groups.domain, Markup)
    followed = model.measure_prefixes(engine.render, Runs(Markup("test_runs"), groups.domain, groups.rows))
    found = {size: violates for _, size, violates in engine.fetch(followed)}
    for size, part in sizes.items():
        assert found[size] in (None, not _meets(model, part, table))
    open_sizes = [part for size, part in sizes.items() if found[size] is None]
    if isinstance(model, AlphaK):
        assert all(_meets(replace(model, alpha=model.alpha - 1e-9), part, table) is False for part in open_sizes)
    elif isinstance(model, BetaLikeness):
        assert all(_is_at_the_bound(model, part, table) for part in open_sizes)
    else:
        assert len(open_sizes) <= 2


def _is_at_the_bound(model: BetaLikeness, part: list[Any], table: list[Any]) -> bool:
    """Tell whether a value has just the share that it may have, as the only value of a table has everywhere."""
    share, whole = brute_force.distribution(part), brute_force.distribution(table)
    most = {value: -math.log(p) if model.form == "enhanced" else math.inf for value, p in whole.items()}
    bounds = {value: float(whole[value]) * (1 + min(model.beta, most[value])) for value in share}
    return any(math.isclose(float(share[value]), bound, rel_tol=1e-6) for value, bound in bounds.items())


def _meets(model: PrivacyModel, part: list[Any], table: list[Any]) -> bool:
    if isinstance(model, BetaLikeness):
        return brute_force.least_beta(part, table, form=model.form) <= model.beta * (1 + 1e-9)
    if isinstance(model, AlphaK):
        named = None if model.values is None else [int(text) for text in model.values]
        share = brute_force.greatest_share(part, model.k, named, counts_null=model.counts_null)
        return share <= Fraction(str(model.alpha))
    assert isinstance(model, DeltaDisclosure)
    return brute_force.disclosed_delta(part, table) < model.delta * (1 - 1e-9)


@MANY
@given(classes=partitions, v=st.sampled_from([0.0, 1.0, 2.25, 10.0]))
def test_variance_diversity(engine: Engine, classes: Classes, v: float) -> None:
    found = check(engine, VarianceDiversity("s", v), classes, lambda part: float(brute_force.variance(part)))
    for c, (_, violates) in found.items():
        assert violates == (float(brute_force.variance(classes[c])) < v - 1e-9)


def test_variance_far_from_zero_and_beyond_doubles(engine: Engine) -> None:
    """A constant class has variance 0 wherever it lies; what no double's square holds is left out."""
    groups = load(engine, {0: [1, 1, 1], 1: [1, 2, 3], 2: [None, None], 3: [4, 5]})
    engine.execute(Statement("test", "UPDATE test_domain SET value = 1e15 + value"))
    engine.execute(Statement("test", "UPDATE test_domain SET value = CAST('NaN' AS FLOAT8) WHERE value = 1e15 + 4"))
    engine.execute(Statement("test", "UPDATE test_domain SET value = 1e200 WHERE value = 1e15 + 5"))
    found = measure(engine, VarianceDiversity("s", 0.5), groups)
    assert {c: violates for c, (_, violates) in found.items()} == {0: True, 1: False, 2: True, 3: True}
    assert found[0][0] == 0
    assert found[1][0] == pytest.approx(2 / 3)


def test_wide_tables_use_wide_integers(engine: Engine) -> None:
    """Counts whose products no BIGINT holds are compared exactly all the same."""
    groups = load(engine, {0: [1, 2, 3], 1: [4, 5, 6]})
    for table in ("test_classes", "test_avs", "test_domain"):
        engine.execute(Statement("test", f"UPDATE {table} SET n = n * 4000000000"))
    wide = Groups(groups.classes, groups.avs, groups.domain, rows=24_000_000_000, height=HEIGHT)
    assert measure(engine, BetaLikeness("s", 0.5, "basic"), wide)[0][0] == pytest.approx(1)
    assert measure(engine, DeltaDisclosure("s", 0.5), wide)[0][0] == math.inf
    for distance, expected in {"equal": 0.5, "ordered": 0.3, "kl": math.log(2), "hierarchical": 7 / 18}.items():
        found = measure(engine, DISTANCES[distance]("s", 0.2), wide)
        assert found[0][0] == pytest.approx(expected), distance
