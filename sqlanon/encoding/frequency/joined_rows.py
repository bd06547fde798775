"""Rows of a person that tell too much together at a generalization: the classes to leave out because of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlanon.encoding.class_sets import list_short
from sqlanon.encoding.frequency.lattice import Node
from sqlanon.models.km_anonymity import persons_of_sets
from sqlanon.sql import Identifier, Relation

if TYPE_CHECKING:
    from sqlanon.encoding.frequency.frequency_sets import FrequencySets


def add_short_sets(sets: FrequencySets, node: Node, table: Relation, failing: Relation, person: Identifier) -> None:
    """Add to the failing classes the smallest one of each set that too few persons have.

    What is left satisfies the models: leaving classes out changes no other set. Of several classes of a size the first
    by their keys is left out.

    person: the column of the frequency set with the codes of persons.
    """
    engine, workspace, keys = sets.engine, sets.workspace, sets.keys.of_node(node)
    numbered, memberships = workspace.table("numbered"), workspace.table("memberships")
    workspace.drop(numbered, memberships)
    engine.analyze(failing)
    engine.run("encoding/frequency/number_kept", numbered=numbered, table=table, keys=keys, failing=failing)
    engine.run(
        "encoding/frequency/create_memberships",
        memberships=memberships,
        table=table,
        keys=keys,
        numbered=numbered,
        person=person,
    )
    engine.analyze(memberships)
    for size, persons in persons_of_sets(sets.task.models).items():
        short, classes = list_short(engine, workspace, memberships, size, persons)
        if classes:
            engine.run("encoding/frequency/add_short", failing=failing, numbered=numbered, short=short)
            engine.run("encoding/frequency/leave_short", memberships=memberships, short=short)
        workspace.drop(short)
    workspace.drop(numbered, memberships)
