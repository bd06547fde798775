"""Applying stored rules: new rows are recoded like those of a release, then checked and published like one."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from sqlanon.catalog import Run
from sqlanon.engines.dialects import dialect_of_url
from sqlanon.engines.files import STANDARD_INPUT, format_of, is_data_file
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.engines.urls import redacted
from sqlanon.plan.connecting import names_file
from sqlanon.plan.repair import require_repairable
from sqlanon.policy import AttributeSection, Policy, ReleaseSection, Source
from sqlanon.policy import CatalogSection as CatalogPlace
from sqlanon.policy.loading import parse_stored
from sqlanon.releases.rules.store_rules import StoredRules, read_rules
from sqlanon.results.run_result import RunResult
from sqlanon.runs.choices import choice_of
from sqlanon.runs.flow import carry_out, interruptible
from sqlanon.runs.sink import Publish
from sqlanon.runs.stored import Application, Stored
from sqlanon.support.environment import Expanded, require_set
from sqlanon.work.journal import Observer
from sqlanon.work.session import open_session

__all__ = ["Application", "apply_rules"]


def apply_rules(
    application: Application,
    run: Run,
    place: tuple[str, str],
    known: Policy | None = None,
    *,
    options: EngineOptions | None = None,
    observer: Observer | None = None,
) -> RunResult:
    """Recode new rows with the rules of a stored release, check the result, and publish it as a run of its own.

    run: the one whose rules are applied; place: the URL and schema of the catalog that it is in.
    known: a policy whose URLs have their passwords, which the catalog doesn't keep; columns that the run's policy does
    not name, and this one leaves out, are left out, and its subject holds.

    Raises what `run` raises; ProtectionError where a class violates a model and that is to be an error.
    """
    policy = _policy(application, run, place, known)
    if application.repair:
        require_repairable(policy)
    require_set(policy.source.file, policy.release.file)
    with (
        interruptible(),
        open_session(policy, options or EngineOptions(), replace_release=application.replace) as session,
    ):
        stored = read_rules(session.catalog, run.id)
        pinned = _pinned(policy, stored)
        source = Stored(session.catalog, _decided(application, pinned), run, stored)
        return carry_out(session, pinned, source, Publish(application.replace), observer)


def _policy(application: Application, run: Run, place: tuple[str, str], known: Policy | None) -> Policy:
    """The policy of the run, with other rows for its source and another place for its release."""
    stored = parse_stored(run.policy)
    urls = [place[0]]
    for part in (known.source, known.release, known.catalog) if known is not None else ():
        urls += [part.url] if part.url is not None else []

    def whole(url: str | None) -> str | None:
        return next((known for known in urls if redacted(known) == url), url)

    source_url, release_url = whole(stored.source.url), whole(stored.release.url)
    home = source_url or release_url or place[0]
    if _is_file(application.to, source_url):
        source = _file_source(application.to, stored.source, source_url)
    else:
        source = Source(url=home, table=application.to)
    release = stored.release.model_copy(update={"url": release_url})
    if application.out is not None and _is_file(application.out, source_url):
        release = ReleaseSection(file=_absolute(application.out))
    elif application.out is not None:
        same = release_url is None and source.file is None
        release_url = None if same else release_url or home
        release = ReleaseSection(url=release_url, table=application.out, layout=stored.release.layout)
    if release.table is not None and source.file is not None and release.url is None:
        release = release.model_copy(update={"url": home})
    catalog = CatalogPlace(url=place[0], schema=place[1])
    attributes = {**_new_omitted(stored, known), **stored.attributes}
    changes: dict[str, Any] = {"source": source, "release": release, "catalog": catalog, "attributes": attributes}
    if known is not None and known.subject is not None:
        changes["subject"] = known.subject
    return stored.model_copy(update=changes)


def _is_file(name: str, url: str | None) -> bool:
    """Tell whether a name is that of a file, which the engine of the rules may read beside its tables."""
    return is_data_file(name) or (url is not None and names_file(url, name))


def _file_source(file: str, stored: Source, url: str | None) -> Source:
    """A file, read as the one that the rules were found on, or by the engine that read their table."""
    kept = file == STANDARD_INPUT or isinstance(file, Expanded)
    path = file if kept else _absolute(file)
    if stored.file is not None:
        idle = stored.reading.ineffective(format_of(file)) if url is None else {}
        plain = {key: Source.model_fields[key].get_default(call_default_factory=True) for key in idle}
        return stored.model_copy(update={"file": path, "url": url, **plain})
    reads_files = url is not None and dialect_of_url(url).names_files
    return Source(file=path, url=url if reads_files else None)


def _absolute(file: str) -> str:
    return file if "://" in file else str(Path(file).absolute())


def _new_omitted(stored: Policy, known: Policy | None) -> dict[str, AttributeSection]:
    """The columns that have come since the rules were found, and that are to be left out: rules are about no others."""
    attributes = {} if known is None else known.attributes
    return {
        name: attribute
        for name, attribute in attributes.items()
        if attribute.role.leaves_out and name not in stored.attributes
    }


def _pinned(policy: Policy, stored: StoredRules) -> Policy:
    """The policy with masks as long as they were, and limits that are the numbers they were."""
    heights = {a.name: a.height for a in stored.attributes}
    limits = {a.name: a.limits for a in stored.attributes}
    attributes = dict(policy.attributes)
    for name, attribute in policy.attributes.items():
        hierarchy = attribute.hierarchy
        if hierarchy is not None and hierarchy.mask is not None and heights.get(name) is not None:
            pinned = hierarchy.model_copy(update={"length": heights[name]})
            attributes[name] = attribute.model_copy(update={"hierarchy": pinned})
        if limits.get(name):
            ends = {"bottom": limits[name].bottom, "top": limits[name].top}
            attributes[name] = attribute.model_copy(update={key: _number(end) for key, end in ends.items()})
    return policy.model_copy(update={"attributes": attributes})


def _number(end: Decimal | None) -> int | float | None:
    """A limit as policies have it."""
    if end is None:
        return None
    return int(end) if end == end.to_integral_value() else float(end)


def _decided(application: Application, policy: Policy) -> Application:
    """The application with the choices of the policy where it makes none."""
    if application.on_violation is not None:
        return application
    return replace(application, on_violation=choice_of(policy), budget=policy.suppression or None)
