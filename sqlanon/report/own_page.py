"""Pages of releases that show no classes: the parts that all of them have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sqlanon import __version__
from sqlanon.catalog import Run
from sqlanon.methods.differential_privacy.result import PrivateResult
from sqlanon.methods.randomization.result import RandomizedResult
from sqlanon.methods.rule_hiding.result import HidingResult
from sqlanon.policy.algorithms import OWN_ALGORITHMS
from sqlanon.policy.facts import without_values
from sqlanon.report.html import template


def render_own(
    name: str,
    run: Run,
    result: PrivateResult | RandomizedResult | HidingResult,
    sentences: Mapping[str, str],
    **parts: Any,
) -> str:
    """Render the whole page of a run by the template of that name, which `own.html.j2` lies under.

    sentences: of the checks, by their names. parts: what the template needs beside the parts of every page.
    """
    policy = json.loads(run.policy)
    return template(name).render(
        run=run,
        result=result,
        source=policy["source"]["table"],
        release=policy["release"]["table"],
        made_by=__version__,
        how=OWN_ALGORITHMS[result.algorithm].sentence,
        checks=[{"sentence": sentences.get(check, check), **asdict(of)} for check, of in result.checks.items()],
        policy=json.dumps(without_values(policy), ensure_ascii=False, indent=2),
        **parts,
    )
