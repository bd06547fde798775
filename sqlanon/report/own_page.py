"""Pages of releases that show no classes: the parts that all of them have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sqlanon import __version__
from sqlanon.catalog import Run
from sqlanon.policy.algorithms import parameters_of_algorithm
from sqlanon.policy.shown_policy import without_values
from sqlanon.report.html import template
from sqlanon.results.method_result import MethodResult


def render_own(
    room: str,
    run: Run,
    result: MethodResult,
    sentences: Mapping[str, str],
    **parts: Any,
) -> str:
    """Render the whole page of a run by the template `page.html.j2` of a method, which extends `own.html.j2`.

    room: the package of the method. sentences: of the checks, by their names.
    parts: what the template needs beside the parts of every page.
    """
    policy, parameters = json.loads(run.policy), parameters_of_algorithm(result.algorithm)
    return template("page.html.j2", room).render(
        run=run,
        result=result,
        source=policy["source"]["table"],
        release=policy["release"]["table"],
        made_by=__version__,
        how="" if parameters is None else parameters.sentence,
        checks=[{"sentence": sentences.get(check, check), **asdict(of)} for check, of in result.checks.items()],
        policy=json.dumps(without_values(policy), ensure_ascii=False, indent=2),
        **parts,
    )
