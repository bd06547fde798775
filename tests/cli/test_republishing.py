"""Commands on a policy that wants one recoding of its source only: the next step that they name works."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.cli.support import call, execute, query

pytestmark = pytest.mark.either_engine


def _wanting_one_recoding(policy: Path) -> None:
    policy.write_text(policy.read_text() + "republish: same-recoding\n")


def test_after_the_first_release_the_commands_offer_what_works(policy: Path, patients_url: str) -> None:
    _wanting_one_recoding(policy)
    assert f"Next: sqlanon run {policy}" in call("check", policy).stderr
    first = call("run", policy)
    assert first.exit_code == 0, first.stderr
    assert "run policy" not in first.stdout
    (offered,) = re.findall(r"sqlanon (apply .* --replace)", first.stdout)
    applied = call(*shlex.split(offered))
    assert applied.exit_code == 0, applied.stderr
    checked = call("check", policy, "--replace")
    assert checked.exit_code == 0
    assert "a run would be refused: republish: same-recoding forbids it" in checked.stderr
    assert "Next: sqlanon run" not in checked.stderr
    told = json.loads(call("check", policy, "--replace", "--json").stdout)
    assert (told["problems"], [one for one in told["warnings"] if "would be refused" in one] != []) == ([], True)
    refused = call("run", policy, "--replace")
    assert refused.exit_code == 2
    (run,) = re.findall(r"`sqlanon apply (\S+)`", refused.stderr)
    assert call("apply", run, "--to", "patients", "--replace", "--policy", policy).exit_code == 0
    assert query(patients_url, "SELECT count(*) FROM sqlanon.releases") == [(3,)]


def test_a_check_makes_no_catalog(policy: Path, patients_url: str) -> None:
    _wanting_one_recoding(policy)
    assert call("check", policy).exit_code == 0
    assert query(patients_url, "SELECT * FROM information_schema.schemata WHERE schema_name = 'sqlanon'") == []


def test_the_way_of_the_guide_after_a_column_has_come(policy: Path, patients_url: str) -> None:
    _wanting_one_recoding(policy)
    run = json.loads(call("run", policy, "--json").stdout)["run"]
    assert call("freeze", run, "--name", "nightly", "--policy", policy).exit_code == 0
    execute(patients_url, "ALTER TABLE patients ADD COLUMN phone VARCHAR(9)")
    stopped = call("job", "run", "nightly", "--policy", policy)
    assert stopped.exit_code == 2
    assert "--policy`" in stopped.stderr
    policy.write_text(policy.read_text().replace("attributes:", "attributes:\n  phone: {role: identifier}"))
    apply = ("apply", run, "--to", "patients", "--replace", "--on-violation", "suppress", "--policy", policy, "--json")
    applied = json.loads(call(*apply).stdout)["run"]
    assert call("freeze", applied, "--name", "nightly", "--policy", policy).exit_code == 0
    assert call("job", "run", "nightly", "--policy", policy).exit_code == 0
    columns = "SELECT column_name FROM information_schema.columns WHERE table_name = 'patients_released'"
    assert ("phone",) not in query(patients_url, columns)
    changed = policy.read_text().replace("phone: {role: identifier}", "phone: {role: insensitive}")
    policy.write_text(changed)
    assert call("run", policy, "--replace").exit_code == 2
    policy.write_text(changed.replace("republish: same-recoding", "republish: allow").replace("k: 5", "k: 9"))
    allowed = call("run", policy, "--replace")
    assert allowed.exit_code == 0, allowed.stderr
    assert "this one says republish: allow" in allowed.stdout
