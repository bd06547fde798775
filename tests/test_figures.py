"""The commands that make the figures of the paper's evaluation, on tables far too small to tell anything."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import pytest

pytest.importorskip("matplotlib", reason="figures are drawn by matplotlib (pip install 'sqlanon[bench]')")
sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
import pruned
import quality
import scans
from agrawal import Wanted, create_statement


@pytest.mark.parametrize(("figure", "worst"), [("c2", 1.0), ("r7", 80_000.0)])
def test_quality_is_measured_by_the_size_of_samples(figure: str, worst: float, tmp_path: Path) -> None:
    points = quality.measure(figure, 1, 1_200, (20,), (100,))
    exact, sampled = sorted(points, key=lambda point: point.n or 0)
    assert 0 <= exact.finished < sampled.alone < worst
    assert sampled.finished < sampled.alone
    assert exact.classes > 20
    quality.draw(figure, points, tmp_path)
    assert (tmp_path / f"quality-{figure}.png").stat().st_size > 5_000


def test_hypothesis_tests_prune_less_than_the_naive_check(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(pruned, "requirements", lambda _panel: {"k = 20": [{"model": "k-anonymity", "k": 20}]})
    found = list(pruned.measure("k", 1_500, (100, 400)))
    assert [row[:3] for row in found] == [("k", "k = 20", 100), ("k", "k = 20", 400)]
    assert sum(row[3] for row in found) < sum(row[4] for row in found)
    pruned.draw("k", found, tmp_path)
    assert (tmp_path / "pruned-k.png").stat().st_size > 5_000


def test_every_panel_asks_for_something() -> None:
    assert {panel: len(pruned.requirements(panel)) for panel in pruned.TITLES} == {
        "k": 3,
        "diversity": 7,
        "uniform": 4,
        "normal": 4,
    }


def test_scans_are_counted_level_by_level() -> None:
    levels = scans.measure("rothko-t, median", 1_000, 50, 100)
    assert [level for _, level, *_ in levels] == list(range(len(levels)))
    assert levels[0][2:4] == (1.0, 2.0)
    assert all(issued >= active for _, _, active, _, issued, _ in levels)
    ((_, episodes, _, predicted, issued, _),) = scans.measure("rothko-s, median", 1_000, 50, 200)
    assert predicted == 2 * episodes
    assert issued >= predicted


def test_normal_salaries_vary_as_much_as_uniform_ones() -> None:
    with duckdb.connect() as session:
        found = []
        for name, normal in (("uniform", False), ("normal", True)):
            session.execute(create_statement("duckdb", name, Wanted(40_000, normal=normal)))
            query = f"SELECT avg(salary), stddev_pop(salary), kurtosis(salary), min(salary) FROM {name}"
            found += session.execute(query).fetchall()
    (mean, deviation, flat, _), (normal_mean, normal_deviation, peaked, least) = found
    assert normal_mean == pytest.approx(mean, rel=0.02)
    assert normal_deviation == pytest.approx(deviation, rel=0.03)
    assert flat == pytest.approx(-1.2, abs=0.05)
    assert peaked == pytest.approx(0, abs=0.25)  # one in a hundred would be negative, and is 0
    assert least >= 0
