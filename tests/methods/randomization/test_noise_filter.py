"""Filters of noise: by arithmetic, against rows that were filtered one by one, and of releases on both engines."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from sqlanon import measure_noise_filter
from sqlanon.errors import PolicyError
from sqlanon.methods.randomization.reconstruction.measure_filter import filter_noise
from sqlanon.models.randomization.changes import AddedNoise
from sqlanon.models.randomization.draws import noise_draws
from sqlanon.models.randomization.noise import GaussianNoise, LaplaceNoise, NoiseDistribution, UniformNoise
from sqlanon.policy.writer import policy_text
from tests.cli.support import call_main, execute
from tests.randomize_support import randomize, randomized_policy
from tests.run_support import open_database

ROWS = 1500


def test_independent_columns_keep_their_noise() -> None:
    """A column whose originals vary less than its noise is better told by its mean: alone, a filter does that too."""
    filtered = filter_noise(np.diag([9.0 + 4.0, 1.0 + 4.0]), [4.0, 4.0])
    assert filtered.components == 1
    assert filtered.together == pytest.approx([0, 0.75])
    assert filtered.alone == pytest.approx([0, 0.75])


def test_equal_columns_lose_all_but_their_share() -> None:
    """Of m columns that tell the same, the mean has an m-th of the noise."""
    for columns in (2, 5):
        filtered = filter_noise(np.full((columns, columns), 100.0) + np.eye(columns), [1.0] * columns)
        assert filtered.components == 1
        assert filtered.together == pytest.approx([1 - 1 / columns] * columns)
        assert filtered.alone == pytest.approx([0] * columns, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_measured_is_what_a_filter_does(seed: int) -> None:
    """Noise of rows, before and after the projection on the components that are kept, which sees the originals."""
    draw = np.random.default_rng(seed)
    originals = draw.normal(size=(200_000, 2)) @ draw.normal(size=(2, 4)) * 5 + draw.normal(size=(200_000, 4)) * 0.2
    deviations = np.array([1.0, 2.0, 3.0, 0.5])
    noise = draw.normal(size=originals.shape) * deviations
    released = originals + noise
    filtered = filter_noise(np.cov(released.T), (deviations**2).tolist())
    scaled = (released - released.mean(axis=0)) / deviations
    signals, components = np.linalg.eigh(np.cov(scaled.T) - np.eye(4))
    kept = components[:, signals > 1]
    guess = scaled @ kept @ kept.T * deviations + released.mean(axis=0)
    left = ((guess - originals) ** 2).mean(axis=0) / deviations**2
    assert kept.shape[1] == filtered.components
    assert filtered.together == pytest.approx(1 - left, abs=0.01)


@pytest.mark.parametrize(
    ("distribution", "unit"),
    [(GaussianNoise(3.0), 1.0), (LaplaceNoise(2.0), 0.5), (UniformNoise(3.0), 1.0), (UniformNoise(3.2), 1.0)],
)
def test_the_variance_is_that_of_draws(distribution: NoiseDistribution, unit: float) -> None:
    segments = [one for one in noise_draws(distribution, unit).segments if one.width == 1]
    total = sum(one.mass for one in segments)
    variance = sum(one.mass * (one.first * unit) ** 2 for one in segments) / total
    assert AddedNoise("x", distribution, unit).variance == pytest.approx(variance, rel=2e-3)


def test_a_release_is_filtered_by_itself_alone(
    database_url: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Two columns that tell the same lose half of their noise; a third one, whose noise is small, none."""
    columns = {"a": "INTEGER", "The b": "DECIMAL(10,1)", "c": "DOUBLE PRECISION", "town": "VARCHAR(9)"}
    changes = {name: {"noise": "gaussian", "deviation": 20} for name in ("a", "The b")}
    roles = {**dict.fromkeys(changes, "quasi-identifier"), "c": "quasi-identifier", "town": "insensitive"}
    with open_database(database_url) as database:
        rows = [(n % 500, n % 500, float(n * 37 % 101), "Ulm") for n in range(ROWS)]
        more = {"c": {"noise": "uniform", "half-width": 2}}
        policy = randomized_policy(database, database.create(columns, rows), roles, changes | more)
    randomize(policy)
    measured = measure_noise_filter(policy)
    assert [one.name for one in measured.columns] == ["a", "The b", "c"]
    assert [one.together for one in measured.columns] == pytest.approx([0.5, 0.5, 0], abs=0.05)
    assert [one.alone for one in measured.columns] == [0, 0, 0]
    assert (measured.rows, measured.components) == (ROWS, 2)
    assert measured.columns[0].noise == pytest.approx(20, abs=0.01)
    file = tmp_path / "policy.yml"
    file.write_text(policy_text(policy), encoding="utf-8")
    code, printed, _ = call_main(capsys, "loss", file, "--json")
    assert (code, json.loads(printed)["components"]) == (0, 2)
    code, printed, _ = call_main(capsys, "loss", file)
    assert (code, "by 2 of 3 principal components" in printed) == (0, True)
    code, _, notes = call_main(capsys, "loss", file, "--by", "a")
    assert (code, "The policy says all itself" in notes) == (2, True)
    execute(database_url, f"UPDATE {policy.release.table} SET a = NULL WHERE a > 300")
    with pytest.raises(PolicyError, match="the release was changed"):
        measure_noise_filter(policy)
    execute(database_url, f"UPDATE {policy.release.table} SET a = 0, c = CAST('NaN' AS FLOAT8)")
    with pytest.raises(PolicyError, match="1,500 rows"):
        measure_noise_filter(policy)
