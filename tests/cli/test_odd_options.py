"""Option values and records that were mangled: an exit code of the documented ones, a sentence, never a traceback."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlanon.report.run_record.record import document_digest
from tests.cli.support import call_main, write_policy
from tests.cli.test_record import digesting, record_of
from tests.odd_values import NUMBERS, TEXTS, mutated
from tests.random_cases import many

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

DOCUMENTED = {0, 1, 2, 3, 4}
SETTINGS = settings(max_examples=many(5), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def require_sentence(capture: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    """The exit code of a command and all that it says, which is a sentence wherever the code isn't 0."""
    code, out, err = call_main(capture, *arguments)
    assert code in DOCUMENTED, ascii((code, out, err))
    assert not any(word in out + err for word in ("unexpected error", "Traceback", "please report")), ascii(out + err)
    assert code == 0 or err.strip() or out.strip()
    return code, out + err


ODD = [
    *(("--statement-timeout", value) for value in ("1e10", "1e400", "nan", "-inf", "0", "1e-9", "")),
    *(("--threads", value) for value in ("0", "99999999999999999999", "5000", "1.5")),
    *(("--memory-limit", value) for value in ("", "-1GB", "1e400GB", "9" * 400 + "GB", "0", "NaN", "1 GB GB")),
    *(("--qi", value) for value in ("", ",", "age,,sex", "\udcff", "a" * 70_000)),
    *(("--k", value) for value in ("0", "-1", "1e3", "9" * 30, "9" * 5000)),
    *((option, value) for option in ("--l", "--t", "--v", "--c") for value in ("nan", "inf", "-0.5", "1e400")),
]


@pytest.mark.parametrize("place", range(len(ODD)))
def test_values_that_no_engine_takes_are_a_wrong_command_line(
    patients_url: str, capsys: pytest.CaptureFixture[str], place: int
) -> None:
    option, value = ODD[place]
    given = {"--qi": "age,sex", "--k": "3", "--l": "2", "--sensitive": "disease"}
    if option in ("--k", "--v", "--t"):
        del given["--l"]
    options = [part for pair in {**given, option: value}.items() for part in pair]
    code, _ = require_sentence(capsys, "verify", patients_url, "patients", *options)
    assert code == 2 or (code, option, value) == (3, "--k", "9" * 30)


NUMERIC = [
    *("--statement-timeout", "--threads", "--memory-limit", "--k", "--l", "--c", "--t", "--v", "--qi", "--sensitive"),
    *("--suppressed-label", "--distance"),
]
_values = st.one_of(st.sampled_from([*TEXTS, *map(str, NUMBERS)]), st.integers().map(str), st.floats().map(str))


@SETTINGS
@given(st.lists(st.tuples(st.sampled_from(NUMERIC), _values), min_size=1, max_size=3))
def test_any_value_of_an_option_ends_in_a_sentence(
    patients_url: str, capsys: pytest.CaptureFixture[str], given: list[tuple[str, str]]
) -> None:
    options = [part for pair in given for part in pair if part.isprintable() or part.isspace()]
    require_sentence(capsys, "verify", patients_url, "patients", *options, "--k", "2", "--qi", "age")


@SETTINGS
@given(st.data())
def test_a_record_changed_by_its_signer_ends_in_a_sentence(
    patients_url: str,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
    data: st.DataObject,
) -> None:
    """Whoever can write the digest anew can write anything."""
    record = _record(patients_url, tmp_path_factory)
    changed = data.draw(mutated(record, most=2))
    with contextlib.suppress(UnicodeEncodeError, RecursionError):
        changed["digest"] = document_digest(changed)
    file = tmp_path_factory.getbasetemp() / "changed.json"
    file.write_text(json.dumps(changed), encoding="utf-8")
    code, _ = require_sentence(capsys, "verify", "--record", file, "--json")
    assert code in ((0, 2, 3, 4) if changed.get("policy") != record["policy"] else (0, 2, 3))


_records: dict[str, dict[str, Any]] = {}


def _record(url: str, factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The record of a run, made once a database."""
    if url not in _records:
        directory = factory.mktemp("record")
        _records[url] = record_of(digesting(write_policy(directory, url)), directory / "record.json")
    return _records[url]


def test_what_is_typed_must_be_text(policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = require_sentence(capsys, "check", policy, "--temp-directory", "\udcff")
    assert (code, "UTF-8" in told) == (2, True)


def test_json_is_told_of_wrong_limits_too(policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = require_sentence(capsys, "check", policy, "--statement-timeout", "1e10", "--json")
    assert (code, json.loads(told)["error"]["exit_code"]) == (2, 2)


@pytest.fixture(scope="module", autouse=True)
def _fresh() -> None:
    _records.clear()


def test_long_nestings_are_refused_soon(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["check"], ["run"], ["verify"], ["verify", "--record"]):
        file = tmp_path / "deep"
        file.write_text("[" * 100_000)
        code, _ = require_sentence(capsys, *command, file)
        assert code == 2
