"""Reading what a catalog recorded, each in one call: a run as a report, two releases compared."""

from __future__ import annotations

from typing import Any

from sqlanon.catalog import SCHEMA
from sqlanon.catalog.location import CatalogAddress
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError
from sqlanon.policy import Policy
from sqlanon.report.difference import Difference, compare_runs
from sqlanon.report.material import collect
from sqlanon.report.page import render
from sqlanon.report.run_record.record import make_record, sealed
from sqlanon.work.session import catalog_place, open_recorded


def run_report(
    run: str,
    *,
    policy: Policy | None = None,
    url: str | None = None,
    options: EngineOptions | None = None,
    population: int | None = None,
) -> str:
    """The report of a run as one HTML page that loads nothing, from the catalog of a policy or of the database `url`.

    run: its id, its beginning, or its last four digits.
    population: how many the table's rows are a random sample of, for the journalist's risk.
    Raises PolicyError for an unknown run or a population smaller than the release, and AccessError.
    """
    with open_recorded(_place(policy, url), options) as catalog:
        return render(collect(catalog, run), population)


def run_record(
    run: str, *, policy: Policy | None = None, url: str | None = None, options: EngineOptions | None = None
) -> dict[str, Any]:
    """The record of a run as plain values, which `check_record` holds its release against; see `run_report`.

    Raises PolicyError for an unknown run, or one that published nothing, or whose release nobody knows any more.
    """
    with open_recorded(_place(policy, url), options) as catalog:
        document = make_record(catalog, catalog.run(run))
    return sealed(document, url if policy is None else policy.release.url or policy.source.url, options)


def diff_runs(
    a: str, b: str, *, policy: Policy | None = None, url: str | None = None, options: EngineOptions | None = None
) -> Difference:
    """Compare the releases of two runs of the same catalog; see `run_report` for the arguments.

    Raises PolicyError for an unknown run, or one that published nothing.
    """
    with open_recorded(_place(policy, url), options) as catalog:
        return compare_runs(catalog, a, b)


def _place(policy: Policy | None, url: str | None) -> CatalogAddress:
    if policy is not None:
        return catalog_place(policy)
    if url is None:
        raise PolicyError("Which catalog? Give a policy or a URL.")
    return CatalogAddress(url, SCHEMA, is_of_policy=False)
