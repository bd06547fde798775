"""One picture of a distribution: the ages of the demonstration's table, with noise, and reconstructed from that."""

from __future__ import annotations

from pathlib import Path

import duckdb

from sqlanon import reconstruct, run
from sqlanon.methods.randomization.reconstruction.picture import draw_reconstruction
from sqlanon.policy.loading import build_policy

LEAST, MOST, BINS = 18, 63, 15
DEVIATION = 10


def draw_ages_with_noise(place: Path, database: Path) -> None:
    """Write `reconstruction.svg` into a directory; the database has the table `people`."""
    policy = build_policy(
        {
            "source": {"url": f"duckdb:///{database}", "table": "people"},
            "release": {"table": "people_with_noise"},
            "attributes": {
                "rownames": {"role": "identifier"},
                "age": {"role": "quasi-identifier"},
                **{name: {"role": "identifier"} for name in ("gender", "region", "education", "health")},
            },
            "privacy": [{"model": "randomization"}],
            "algorithm": {
                "name": "randomize",
                "columns": {"age": {"noise": "gaussian", "deviation": DEVIATION, "range": [LEAST, MOST]}},
            },
        }
    )
    run(policy, replace=True)
    estimated = reconstruct(policy, "age", bins=BINS, range_=(LEAST - 0.5, MOST - 0.5))
    bins = [(share.low, share.high) for share in estimated.groups[0].shares]
    with duckdb.connect(str(database)) as connection:
        ages = [float(age) for (age,) in connection.execute("SELECT age FROM people").fetchall()]
    true = [
        sum(low <= age < high for age in ages) / len(ages) for low, high in bins if low is not None and high is not None
    ]
    (place / "reconstruction.svg").write_text(draw_reconstruction(estimated, true), encoding="utf-8")
