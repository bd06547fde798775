"""Parameters of privacy models, and what these models say of measures that a database gave them."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sqlanon import policy
from sqlanon.errors import PolicyError
from sqlanon.models import (
    AlphaK,
    AverageRisk,
    BetaLikeness,
    DeltaDisclosure,
    DeltaPresence,
    DistinctLDiversity,
    EntropyLDiversity,
    KAnonymity,
    KMap,
    PopulationUniques,
    PrivacyModel,
    RecursiveLDiversity,
    VarianceDiversity,
    from_spec,
)
from sqlanon.models.closeness import DISTANCES
from sqlanon.models.thresholds import ratio_of_counts, threshold_of_ratios


@given(ratio=st.fractions(0, 9, max_denominator=99), value=st.floats(1e-30, 1e30), rows=st.integers(1, 99))
def test_a_threshold_with_small_terms_divides_the_ratios_of_counts_alike(
    ratio: Fraction, value: float, rows: int
) -> None:
    threshold = threshold_of_ratios(value, rows)
    assert threshold.denominator <= rows
    ratio = Fraction(ratio.numerator % (rows + 1), ratio.denominator % rows + 1)
    assert (ratio < threshold) == (ratio < Fraction(str(value)))


@given(divided=st.integers(0, 10**6), by=st.integers(1, 99), value=st.floats(1e-30, 1e30), most=st.integers(0, 10**6))
def test_a_threshold_may_be_of_greater_counts_than_those_that_divide(
    divided: int, by: int, value: float, most: int
) -> None:
    most = max(most, divided)
    threshold = threshold_of_ratios(value, 99, most=most)
    assert threshold.denominator <= 99
    assert threshold <= most + 1
    assert (Fraction(divided, by) < threshold) == (Fraction(divided, by) < Fraction(str(value)))


@pytest.mark.parametrize(
    ("spec", "attainable", "worst"),
    [
        (policy.KAnonymityParameters(model="k-anonymity", k=5), "k: 17", 17.0),
        (policy.DistinctLDiversityParameters(model="distinct-l-diversity", attribute="s", l=3), "l: 17", 17.0),
        (policy.EntropyLDiversityParameters(model="entropy-l-diversity", attribute="s", l=3), "l: 17", 17.0),
        (
            policy.RecursiveLDiversityParameters(model="recursive-l-diversity", attribute="s", c=3, l=2),
            "c: 17.01",
            20.0,
        ),
        (policy.TClosenessParameters(model="t-closeness", attribute="s", distance="ordered", t=0.2), "t: 17", 20.0),
        (policy.VarianceDiversityParameters(model="variance-diversity", attribute="s", v=2.5), "v: 17", 17.0),
        (
            policy.BetaLikenessParameters(model="beta-likeness", attribute="s", beta=2.5, form="basic"),
            "beta: 17",
            20.0,
        ),
        (
            policy.AlphaKParameters(model="alpha-k", attribute="s", alpha=0.5, k=2, values=["x"]),
            "alpha: 17",
            20.0,
        ),
        (
            policy.ConfidenceBoundParameters(model="confidence-bound", attribute="s", confidence=0.5),
            "confidence: 17",
            20.0,
        ),
        (policy.DeltaDisclosureParameters(model="delta-disclosure", attribute="s", delta=2.5), "delta: 17.01", 20.0),
        (policy.AverageRiskParameters(model="average-risk", risk=0.5), "risk: 17", 20.0),
        (policy.KMapParameters(model="k-map", k=5, population="people"), "k: 17", 17.0),
        (
            policy.DeltaPresenceParameters(model="delta-presence", maximum=0.3, population="people"),
            "no maximum below 1",
            20.0,
        ),
        (
            policy.PopulationUniquenessParameters(model="population-uniqueness", share=0.1, sample_of=0.5),
            "share: 17",
            20.0,
        ),
    ],
)
def test_from_spec(spec: policy.Model, attainable: str, worst: float) -> None:
    model = from_spec(spec)
    assert model.name == spec.model
    given = spec.model_dump(mode="json", exclude_none=True).items()
    assert model.parameters == {key: value for key, value in given if key != "model"}
    assert model.attainable(17.0) == attainable
    assert model.worst_of((17.0, 20.0)) == worst
    assert model.monotone_under_generalization or model.name == "population-uniqueness"


def test_attainable_is_rounded_to_the_safe_side() -> None:
    assert EntropyLDiversity("s", 3).attainable(2.99999) == "l: 2.999"
    assert EntropyLDiversity("s", 3).attainable(2.9999999999999996) == "l: 3"
    assert RecursiveLDiversity("s", 3, 2).attainable(math.inf) == "no c: there are fewer than 2 values"
    assert RecursiveLDiversity("s", 3, 2).attainable(1.5) == "c: 1.501"
    assert DISTANCES["equal"]("s", 0.1).attainable(0.123401) == "t: 0.1235"
    assert DeltaPresence(0.1, "people").attainable(0.123401) == "maximum: 0.1235"
    assert DeltaPresence(0.1, "people").attainable(math.inf) == "no maximum below 1"
    assert DeltaPresence(0.9, "people", 0.5).attainable(0.123456) == "minimum: 0.1234"
    assert DeltaPresence(0.9, "people", 0.5).attainable(0.0) == "no minimum above 0"


@pytest.mark.parametrize(
    ("model", "worst", "too_bad"),
    [
        (KAnonymity(3), 3.0, 2.0),
        (DistinctLDiversity("s", 2), 2.0, 1.0),
        (EntropyLDiversity("s", 2), 2.0, 1.9999999),
        (RecursiveLDiversity("s", 1.1, 2), 10 / 11, 11 / 10),
        (RecursiveLDiversity("s", 0.8333333333333334, 2), 5 / 6, 6 / 7),
        (RecursiveLDiversity("s", 1e-9, 2), 1e-10, math.inf),
        (VarianceDiversity("s", 2 / 9), 2 / 9, 2 / 9 - 1e-9),
        (BetaLikeness("s", 1.5), 1.5, 1.5 + 1e-8),
        (BetaLikeness("s", 1.5), 0.0, math.inf),
        (DeltaDisclosure("s", 1.5), 1.5 - 1e-8, 1.5),
        (AlphaK("s", 0.1, 2), 0.1, 1 / 9),
        (AlphaK("s", 1.0, 2), 1.0, math.inf),
        (AverageRisk(0.2), 0.2, 0.2 + 1e-9),
        (AverageRisk(1 / 3), 1 / 4, 1 / 3),
        (PopulationUniques(0.01, 0.1), 0.01, math.inf),
        (KMap(3, "people"), 3.0, 2.0),
        (DeltaPresence(0.3, "people"), 0.3, 0.3 + 1e-9),
        (DeltaPresence(0.3333333333333333, "people"), 33 / 100, 1 / 3),
        (DeltaPresence(0.9, "people"), 9 / 10, math.inf),
        (DeltaPresence(0.9, "people", 0.1), 1 / 10, 0.0),
        (DeltaPresence(0.9, "people", 1 / 6), 1 / 6, 1 / 7),
        (DeltaPresence(0.9, "people", 0.8333333333333334), 6 / 7, 5 / 6),
        (DeltaDisclosure("s", 1e9), 99.0, math.inf),
        *((distance("s", 0.3), 0.3, 0.3 + 1e-9) for distance in DISTANCES.values()),
    ],
)
def test_whether_a_model_holds_is_told_from_its_worst_measure(
    model: PrivacyModel, worst: float, too_bad: float
) -> None:
    assert model.is_met_by(worst, 100) is True
    assert model.is_met_by(too_bad, 100) is False
    assert model.is_met_by(math.nan, 100) is False


def test_what_rounding_decides_is_not_told() -> None:
    least = EntropyLDiversity("s", 2).least
    assert EntropyLDiversity("s", 2).is_met_by(math.exp(least), 100) is None
    assert RecursiveLDiversity("s", 0.5, 2).is_met_by(0.5, 2**26) is False
    assert RecursiveLDiversity("s", 0.5, 2).is_met_by(0.5, 2**26 + 1) is None
    assert DeltaPresence(0.5, "people").is_met_by(0.5, 2**25 - 1) is True
    assert DeltaPresence(0.5, "people").is_met_by(0.5, 2**25) is None
    assert DeltaPresence(0.5, "people", 0.25).is_met_by(0.5, 100) is None
    assert DeltaPresence(0.5, "people", 0.25).is_met_by(0.25, 2**25) is None


@pytest.mark.parametrize(
    ("measures", "worst"),
    [
        ((0.1, 0.4), 0.1),
        ((0.25, 0.4), 0.25),
        ((0.25, 0.5), 0.5),
        ((0.3, 0.4), 0.4),
        ((0.1, 0.6), 0.6),
        ((0.3, 0.5), 0.5),
    ],
)
def test_the_worst_of_two_bounds_is_one_that_violates_or_may(measures: tuple[float, float], worst: float) -> None:
    assert DeltaPresence(0.5, "people", 0.25).worst_of(measures) == worst


counts = st.integers(1, 2**26)


@given(pair=st.tuples(counts, counts).filter(lambda pair: sum(pair) <= 2**26))
@example(pair=(2**26 - 1, 1))
@example(pair=(1, 2**26 - 1))
@example(pair=(2**25, 2**25 - 1))
def test_a_ratio_of_counts_is_told_from_its_double(pair: tuple[int, int]) -> None:
    assert ratio_of_counts(pair[0] / pair[1], 2**26) == Fraction(*pair)


LIMITS: dict[str, Callable[[], PrivacyModel]] = {
    "k of none": lambda: KAnonymity(0),
    "k of a part": lambda: KAnonymity(2.5),  # type: ignore[arg-type]
    "k of a truth": lambda: KAnonymity(True),
    "l of none": lambda: DistinctLDiversity("s", 0),
    "l below 1": lambda: EntropyLDiversity("s", 0.5),
    "l endless": lambda: EntropyLDiversity("s", math.inf),
    "c of 0": lambda: RecursiveLDiversity("s", 0.0, 2),
    "c endless": lambda: RecursiveLDiversity("s", math.inf, 2),
    "l of c below 1": lambda: RecursiveLDiversity("s", 2.0, 0),
    "v below 0": lambda: VarianceDiversity("s", -1.0),
    "v no number": lambda: VarianceDiversity("s", math.nan),
    "beta of 0": lambda: BetaLikeness("s", 0.0),
    "form unknown": lambda: BetaLikeness("s", 1.0, "strict"),
    "alpha of 0": lambda: AlphaK("s", 0.0, 2),
    "alpha above 1": lambda: AlphaK("s", 1.5, 2),
    "k of none, beside alpha": lambda: AlphaK("s", 0.5, 0),
    "values of none": lambda: AlphaK("s", 0.5, 2, ()),
    "values twice": lambda: AlphaK("s", 0.5, 2, ("x", "x")),
    "delta of 0": lambda: DeltaDisclosure("s", 0.0),
    "maximum of 0": lambda: DeltaPresence(0.0, "people"),
    "maximum of all": lambda: DeltaPresence(1.0, "people"),
    "minimum of 0": lambda: DeltaPresence(0.5, "people", 0.0),
    "delta no number": lambda: DeltaDisclosure("s", math.nan),
    "no attribute": lambda: DistinctLDiversity(None, 2),  # type: ignore[arg-type]
    **{f"t no number, {name}": lambda one=one: one("s", math.nan) for name, one in DISTANCES.items()},  # type: ignore[misc]
    **{f"t below 0, {name}": lambda one=one: one("s", -0.1) for name, one in DISTANCES.items()},  # type: ignore[misc]
}


@pytest.mark.parametrize("name", LIMITS)
def test_parameters_have_the_limits_of_the_grammar(name: str) -> None:
    with pytest.raises(PolicyError, match="must be"):
        LIMITS[name]()


def test_what_compares_with_the_table_depends_on_suppressed_rows() -> None:
    models: list[PrivacyModel] = [KAnonymity(2), DistinctLDiversity("s", 2), VarianceDiversity("s", 1.0)]
    assert all(model.monotone_under_suppression for model in models)
    compared = [*DISTANCES.values(), BetaLikeness, DeltaDisclosure]
    assert not any(model.monotone_under_suppression for model in compared)
