"""Spark's catalog of tables, through the session's JVM: what a table is, and changes that SQL has no statement for."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa

from streams.errors import WrongOption
from streams.spark.tables.catalog_schema import json_of_schema, schema_of_json
from streams.spark.tables.model import TableSpec
from streams.spark.types import ddl_columns, quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCATION_KEY: Final = "caudal.location"
"""Key in the first column's metadata: the one thing of a catalog's entry that reaches a data source in Python."""

PUSHDOWN_KEY: Final = "caudal.pushdown"
"""Key beside it: may the data source take filters? Sessions that are not configured for it refuse one that does."""

_PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"
_NAME: Final = re.compile(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)?")
_COLUMN_TYPES_KEY: Final = "spark.hadoop.hive.metastore.disallow.incompatible.col.type.changes"


class CatalogEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A table as the catalog knows it."""

    name: str
    provider: str
    location: str
    fields: list[dict[str, Any]]
    """Columns in Spark's JSON."""
    partition_by: tuple[str, ...]
    size_believed: int | None = None
    """Bytes that Spark plans joins by; None when it looks at the files instead."""
    source: dict[str, str] = {}
    """What the entry tells our data source; nothing for formats that Spark reads itself."""

    @property
    def schema(self) -> pa.Schema:
        """The columns; TypeError when somebody else's table has types that ours do not."""
        return schema_of_json(self.fields)


class Catalog:
    """The session's catalog; the names of tables are `table` or `database.table`."""

    def __init__(self, session: "SparkSession") -> None:
        self._session = session
        self._java: Any = session._jsparkSession  # noqa: SLF001 -- there is no public way to the JVM
        self._jvm: Any = session._jvm  # noqa: SLF001 -- there is no public way to the JVM

    def find(self, name: str) -> CatalogEntry | None:
        """The table of that name; None when there is none, or a view."""
        identifier = self._identifier(name)
        catalog = self._java.sessionState().catalog()
        if not catalog.tableExists(identifier):
            return None
        table = catalog.getTableMetadata(identifier)
        if table.provider().isEmpty() or table.tableType().name() == "VIEW":
            return None
        fields = json.loads(table.schema().json())["fields"]
        metadata = fields[0]["metadata"] if fields else {}
        partition_by = table.partitionColumnNames().mkString("\n")
        return CatalogEntry(
            name=name,
            provider=str(table.provider().get()).lower(),
            location=self._jvm.org.apache.hadoop.fs.Path(table.location()).toString(),
            fields=fields,
            partition_by=tuple(partition_by.split("\n")) if partition_by else (),
            size_believed=None if table.stats().isEmpty() else int(table.stats().get().sizeInBytes()),
            source={key: value for key, value in metadata.items() if key in (LOCATION_KEY, PUSHDOWN_KEY)},
        )

    def names(self) -> list[str]:
        """Every table of every database."""
        found: list[str] = []
        for (database,) in self._session.sql("SHOW DATABASES").collect():
            prefix = "" if database == "default" else f"{database}."
            rows = self._session.sql(f"SHOW TABLES IN {quoted(database)}").collect()
            found.extend(prefix + row["tableName"] for row in rows if not row["isTemporary"])
        return found

    def create(self, spec: TableSpec, schema: pa.Schema, *, partition_by: Iterable[str], location: str | None) -> None:
        """Add a table, and its database, unless there is one."""
        database, _, _ = spec.name.rpartition(".")
        if database:
            self._session.sql(f"CREATE DATABASE IF NOT EXISTS {quoted(database)}")
        statement = f"CREATE TABLE IF NOT EXISTS {sql_name(spec.name)} ({ddl_columns(schema)}) USING {spec.format}"
        columns = ", ".join(quoted(column) for column in partition_by)
        if columns:
            statement += f" PARTITIONED BY ({columns})"
        if location is not None:
            statement += f" LOCATION {text(location)}"
        self._session.sql(statement)

    def source(self, location: str) -> dict[str, str]:
        """What an entry must tell our data source."""
        pushdown = str(self._session.conf.get(_PUSHDOWN, "false")).lower()
        return {LOCATION_KEY: location, PUSHDOWN_KEY: pushdown}

    def set_columns(self, name: str, schema: pa.Schema, *, source: Mapping[str, str] | None = None) -> None:
        """Give a table other columns (without those it is partitioned by); its files stay as they are."""
        from py4j.protocol import Py4JJavaError

        columns = self._jvm.org.apache.spark.sql.types.DataType.fromJson(json_of_schema(schema, source or {}))
        identifier = self._identifier(name)
        catalog = self._java.sessionState().catalog()
        database = catalog.getTableMetadata(identifier).identifier().database().get()
        try:
            self._java.sharedState().externalCatalog().alterTableDataSchema(database, identifier.table(), columns)
        except Py4JJavaError as error:
            if "incompatible" not in str(error):
                raise
            raise WrongOption(_COLUMN_TYPES_KEY, "true", "false, so that types of columns can grow") from error
        self.refresh(name)

    def partitions(self, name: str) -> set[str]:
        """Folders of the partitions that are registered."""
        return {str(row[0]) for row in self._session.sql(f"SHOW PARTITIONS {sql_name(name)}").collect()}

    def add_partitions(self, name: str, partitions: Iterable[Mapping[str, str | None]]) -> None:
        """Register partitions that are not yet there."""
        clauses = " ".join(f"PARTITION {_partition_clause(partition)}" for partition in partitions)
        if clauses:
            self._session.sql(f"ALTER TABLE {sql_name(name)} ADD IF NOT EXISTS {clauses}")

    def drop_partition(self, name: str, partition: Mapping[str, str | None]) -> None:
        """Forget a partition."""
        self._session.sql(f"ALTER TABLE {sql_name(name)} DROP IF EXISTS PARTITION {_partition_clause(partition)}")

    def measure(self, name: str) -> None:
        """Let Spark know how large a table has become, for its plans."""
        self._session.sql(f"ANALYZE TABLE {sql_name(name)} COMPUTE STATISTICS NOSCAN")

    def refresh(self, name: str) -> None:
        """Let this session list the table's files anew; other sessions do by themselves after a second."""
        self._java.sessionState().catalog().refreshTable(self._identifier(name))

    def has_extension(self, name: str) -> bool:
        """Does the session have an extension of Spark's SQL: named in its configuration, and in a jar?"""
        from py4j.protocol import Py4JJavaError

        if name not in str(self._session.conf.get("spark.sql.extensions", "")):
            return False
        try:
            self._jvm.org.apache.spark.util.Utils.classForName(name, True, False)
        except (Py4JJavaError, TypeError):
            return False
        return True

    def warehouse_location(self, name: str) -> str:
        """The folder that a table without a location of its own gets."""
        return str(self._java.sessionState().catalog().defaultTablePath(self._identifier(name)))

    def _identifier(self, name: str) -> Any:
        return self._java.sessionState().sqlParser().parseTableIdentifier(sql_name(name))


def sql_name(name: str) -> str:
    """A table's name as it stands in SQL; WrongOption when it is none."""
    if not _NAME.fullmatch(name):
        raise WrongOption("table", name, "letters, digits and _, with the database and a dot in front if need be")
    return ".".join(quoted(part) for part in name.split("."))


def text(value: str) -> str:
    """A literal of Spark's SQL."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _partition_clause(partition: Mapping[str, str | None]) -> str:
    parts = (f"{quoted(name)}={'null' if value is None else text(value)}" for name, value in partition.items())
    return f"({', '.join(parts)})"
