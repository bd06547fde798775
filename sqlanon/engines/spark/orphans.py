"""Files of work tables that no metastore knows: of one in memory that has ended, or of a table that was being dropped.

The ledger names a schema and the beginning of the tables' names; their directories are in that of the schema.
"""

from __future__ import annotations

import glob
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from sqlanon.engines.private_files import is_own_directory
from sqlanon.engines.spark.metastore import Metastore
from sqlanon.engines.spark.session import warehouse_of
from sqlanon.sql import Relation

if TYPE_CHECKING:
    from sqlanon.engines.spark.engine import SparkEngine

_OF_MACHINE = "file:"


def remove_orphans(engine: SparkEngine, prefix: Relation) -> Iterator[str]:
    """Remove directories of tables by the beginning of their names, once no table has them; say what was done.

    Where directories can't be reached from this machine, and Spark has forgotten the schema, they are named.
    """
    schema = Relation(prefix.schema or "")
    known = Metastore(engine).location_of_schema(schema)
    place = known or f"{warehouse_of(engine.driver_connection)}/{schema.name}.db"
    directory = Path(place.removeprefix(_OF_MACHINE))
    if not place.startswith(_OF_MACHINE) or not directory.is_dir():
        if known is None and not engine.writes_here:
            yield f"Spark has forgotten schema {schema}: on its machine, remove {place}/{prefix.name}* if it is there"
        return
    for path in sorted(directory.glob(f"{glob.escape(prefix.name)}*")):
        if is_own_directory(path):
            shutil.rmtree(path)
            yield f"removed directory {path}"
        else:
            yield f"kept {path}, which is not a directory of this user: its owner is to remove it"
