"""The record of a published release: made once, with its rules, in the transaction that publishes it or after it."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock, create_autospec

import pytest

from sqlanon.catalog import Catalog
from sqlanon.engines.base import Engine
from sqlanon.runs.recording import PublishedRecord
from sqlanon.sql import Relation


@pytest.mark.parametrize("rules", [None, Mock(record="record", relations=("tables",))])
@pytest.mark.parametrize("is_one_database", [True, False])
def test_a_release_is_recorded_once_however_often_it_was_tried(is_one_database: bool, rules: Any) -> None:
    catalog, session, relation, release = create_autospec(Catalog), Mock(spec=Engine), Relation("released"), Mock()
    catalog.record_release_within.return_value = is_one_database
    record = PublishedRecord(catalog, "run", relation, release, rules)
    for _ in range(2):  # the first attempt was rolled back
        record.make_within(session)
    assert not catalog.record_release.called
    record.make_up_for()
    assert catalog.record_release.call_count == (not is_one_database)
    assert catalog.record_rules.call_count == (not is_one_database and rules is not None)
    assert catalog.record_rules_within.call_count == (2 if is_one_database and rules is not None else 0)
