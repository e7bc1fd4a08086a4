"""Spark's catalog of tables, through the session's JVM: entries, and changes that SQL has no statement for."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa

from streams.errors import WrongOption
from streams.spark.tables.model import TableSpec
from streams.spark.types import arrow_type, ddl_columns, ddl_type, list_of, map_of, quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCATION_KEY: Final = "caudal.location"
"""Key in the first column's metadata: the only part of a catalog entry that reaches a data source in Python."""

PUSHDOWN_KEY: Final = "caudal.pushdown"
"""Key beside it: whether the data source may take filters. Other sessions refuse a source that does."""

_PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"
_NAME: Final = re.compile(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)?")
_COLUMN_TYPES_KEY: Final = "spark.hadoop.hive.metastore.disallow.incompatible.col.type.changes"
# Types that Spark's JSON spells unlike its SQL.
_JSON_NAMES: Final = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}


class CatalogEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A table as the catalog knows it."""

    name: str
    provider: str
    location: str
    fields: list[dict[str, Any]]
    """Columns in Spark's JSON."""
    partition_by: tuple[str, ...]
    planned_size: int | None = None
    """Bytes by which Spark plans joins; None if it looks at the files instead."""
    source: dict[str, str] = {}
    """Metadata for our data source; empty for formats that Spark reads itself."""

    @property
    def schema(self) -> pa.Schema:
        """The columns; TypeError if a table of another writer has types that ours do not."""
        return schema_from_json(self.fields)


class Catalog:
    """The session's catalog; table names are `table` or `database.table`."""

    def __init__(self, session: "SparkSession") -> None:
        self._session = session
        self._java: Any = session._jsparkSession  # noqa: SLF001 -- there is no public way to the JVM
        self._jvm: Any = session._jvm  # noqa: SLF001 -- there is no public way to the JVM

    def find(self, name: str) -> CatalogEntry | None:
        """The table of that name; None if it does not exist or is a view."""
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
            planned_size=None if table.stats().isEmpty() else int(table.stats().get().sizeInBytes()),
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
        """Create a table, and its database, unless they exist."""
        database, _, _ = spec.name.rpartition(".")
        if database:
            self._session.sql(f"CREATE DATABASE IF NOT EXISTS {quoted(database)}")
        statement = f"CREATE TABLE IF NOT EXISTS {sql_name(spec.name)} ({ddl_columns(schema)}) USING {spec.format}"
        columns = ", ".join(quoted(column) for column in partition_by)
        if columns:
            statement += f" PARTITIONED BY ({columns})"
        if location is not None:
            statement += f" LOCATION {_literal(location)}"
        self._session.sql(statement)

    def source(self, location: str) -> dict[str, str]:
        """The metadata that an entry must have for our data source."""
        pushdown = str(self._session.conf.get(_PUSHDOWN, "false")).lower()
        return {LOCATION_KEY: location, PUSHDOWN_KEY: pushdown}

    def set_columns(self, name: str, schema: pa.Schema, *, source: Mapping[str, str] | None = None) -> None:
        """Replace the columns of a table (except partition columns); its files stay unchanged."""
        from py4j.protocol import Py4JJavaError

        columns = self._jvm.org.apache.spark.sql.types.DataType.fromJson(schema_to_json(schema, source or {}))
        identifier = self._identifier(name)
        catalog = self._java.sessionState().catalog()
        database = catalog.getTableMetadata(identifier).identifier().database().get()
        try:
            self._java.sharedState().externalCatalog().alterTableDataSchema(database, identifier.table(), columns)
        except Py4JJavaError as error:
            if "incompatible" not in str(error):
                raise
            raise WrongOption(_COLUMN_TYPES_KEY, "true", "must be false, so that column types can grow") from error
        self.refresh(name)

    def partitions(self, name: str) -> set[str]:
        """Folders of the registered partitions."""
        return {str(row[0]) for row in self._session.sql(f"SHOW PARTITIONS {sql_name(name)}").collect()}

    def add_partitions(self, name: str, partitions: Iterable[Mapping[str, str | None]]) -> None:
        """Register partitions unless they are."""
        clauses = " ".join(f"PARTITION {_partition_clause(partition)}" for partition in partitions)
        if clauses:
            self._session.sql(f"ALTER TABLE {sql_name(name)} ADD IF NOT EXISTS {clauses}")

    def drop_partition(self, name: str, partition: Mapping[str, str | None]) -> None:
        """Unregister a partition."""
        self._session.sql(f"ALTER TABLE {sql_name(name)} DROP IF EXISTS PARTITION {_partition_clause(partition)}")

    def measure(self, name: str) -> None:
        """Update the size of a table that Spark plans with."""
        self._session.sql(f"ANALYZE TABLE {sql_name(name)} COMPUTE STATISTICS NOSCAN")

    def refresh(self, name: str) -> None:
        """Make this session list the table's files again; other sessions do so after a second."""
        self._java.sessionState().catalog().refreshTable(self._identifier(name))

    def has_extension(self, name: str) -> bool:
        """Whether the session has an extension of Spark's SQL: named in its configuration, and in a jar."""
        from py4j.protocol import Py4JJavaError

        if name not in str(self._session.conf.get("spark.sql.extensions", "")):
            return False
        try:
            self._jvm.org.apache.spark.util.Utils.classForName(name, True, False)
        except (Py4JJavaError, TypeError):
            return False
        return True

    def warehouse_location(self, name: str) -> str:
        """The folder of a table without a location of its own."""
        return str(self._java.sessionState().catalog().defaultTablePath(self._identifier(name)))

    def _identifier(self, name: str) -> Any:
        return self._java.sessionState().sqlParser().parseTableIdentifier(sql_name(name))


def sql_name(name: str) -> str:
    """A table's name in SQL; WrongOption if it is not a valid one."""
    if not _NAME.fullmatch(name):
        raise WrongOption("table", name, "must be table or database.table, of letters, digits and _")
    return ".".join(quoted(part) for part in name.split("."))


def schema_from_json(fields: Iterable[Mapping[str, Any]]) -> pa.Schema:
    """The schema in the list `fields` of Spark's JSON; TypeError if tables have no such type."""
    return pa.schema([pa.field(field["name"], _arrow(field["type"])) for field in fields])


def schema_to_json(schema: pa.Schema, metadata: Mapping[str, str]) -> str:
    """A schema in Spark's JSON, with metadata in the first column."""
    fields = [_field(field) for field in schema]
    if fields:
        fields[0]["metadata"] = dict(metadata)
    return json.dumps({"type": "struct", "fields": fields})


def _arrow(kind: Any) -> pa.DataType:
    if isinstance(kind, str):
        # varchar(n) and char(n) are strings of limited length.
        return pa.string() if kind.startswith(("varchar", "char", "string ")) else arrow_type(kind)
    match kind["type"]:
        case "array":
            return list_of(_arrow(kind["elementType"]))
        case "map":
            return map_of(_arrow(kind["valueType"]))
        case "struct":
            return pa.struct(list(schema_from_json(kind["fields"])))
        case other:
            raise TypeError(f"Tables have no type {other}")


def _field(field: pa.Field) -> dict[str, Any]:
    return {"name": field.name, "type": _json(field.type), "nullable": True, "metadata": {}}


def _json(kind: pa.DataType) -> Any:
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": _json(kind.value_type), "containsNull": True}
    if pa.types.is_map(kind):
        value = _json(kind.item_type)
        return {"type": "map", "keyType": "string", "valueType": value, "valueContainsNull": True}
    if pa.types.is_struct(kind):
        return {"type": "struct", "fields": [_field(field) for field in kind]}
    name = ddl_type(kind)
    return _JSON_NAMES.get(name, name)


def _literal(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _partition_clause(partition: Mapping[str, str | None]) -> str:
    parts = (f"{quoted(name)}={'null' if value is None else _literal(value)}" for name, value in partition.items())
    return f"({', '.join(parts)})"
