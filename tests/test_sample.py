"""Values before and labels after, for people, whatever the size of the table."""

from __future__ import annotations

import pytest

from sqlanon.cli.summary import comparison_text
from sqlanon.policy.loading import parse_policy
from sqlanon.report import sample
from tests.cli.support import execute
from tests.run_support import run

POLICY = """\
source:  {{url: "{url}", table: people}}
release: {{table: people_released}}
attributes:
  age:  {{role: quasi-identifier, hierarchy: {{intervals: [10, 20, 40]}}}}
  city: {{role: quasi-identifier}}
  cents: {{role: quasi-identifier, show: bounds}}
privacy: [{{model: k-anonymity, k: 20}}]
"""


@pytest.mark.either_engine
@pytest.mark.parametrize("counted", [1_000_000, 100])
def test_values_and_labels_are_told_of_large_tables_too(
    database_url: str, counted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample, "COUNTED_ROWS", counted)
    columns = "20 + i * 7 % 59 AS age, 'c' || i * 5 % 7 AS city, i * 7919 AS cents"
    execute(database_url, f"CREATE TABLE people AS SELECT {columns} FROM generate_series(1, 500) AS n(i)")
    policy = parse_policy(POLICY.format(url=database_url))
    comparison = sample.compare(policy, run(policy))
    changes = {one.name: one for one in comparison.changes}
    assert (changes["age"].before, changes["city"].before) == (59, 7)
    assert changes["cents"].before == (500 if counted > 500 else None)  # of a range of four million whole numbers
    assert all(one.after > 0 for one in comparison.changes)
    line = next(line for line in comparison_text(comparison).splitlines() if line.split()[:1] == ["cents"])
    assert ("many" in line) == (counted < 500)
