"""The tables, as the newest migration leaves them.

Names are compared and sorted byte by byte on every database, so that subjects have the same order everywhere.
`context` is the name of a context with its leading dot (`.` is the default one); `subject` is the name inside it.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    text,
)

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_key",
        "fk": "%(table_name)s_%(referred_table_name)s",
        "ix": "%(table_name)s_by_%(column_0_N_name)s",
    }
)


def name_column(name: str, *, primary_key: bool = False, nullable: bool = False) -> Column[str]:
    """A column for names, in bytewise order on PostgreSQL as well as on SQLite."""
    bytewise = String().with_variant(String(collation="C"), "postgresql")
    return Column(name, bytewise, primary_key=primary_key, nullable=nullable)


contexts = Table(
    "contexts",
    metadata,
    name_column("name", primary_key=True),
    Column("last_id", Integer, nullable=False),
)
"""Namespaces of subjects, each with its own counter of schema ids."""

schemas = Table(
    "schemas",
    metadata,
    name_column("context", primary_key=True),
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("guid", String(36), nullable=False),
    Column("content_hash", String(64), nullable=False),
    Column("imported_copy", Integer, nullable=False),
    Column("meaning_hash", String(64), nullable=False),
    Column("schema_type", String(8), nullable=False),
    Column("schema_text", Text, nullable=False),
    Column("metadata", Text),
    Column("rule_set", Text),
    Column("has_references", Boolean, nullable=False),
    ForeignKeyConstraint(["context"], ["contexts.name"]),
    Index("schemas_by_content", "context", "content_hash", "imported_copy", unique=True),
    Index("schemas_by_meaning", "context", "meaning_hash"),
    Index("schemas_by_guid", "guid"),
)
"""The contents of schemas by id. Rows are never changed: they are added, and removed with their last version.

`content_hash` covers everything that distinguishes two schemas, and a content has one id. Only an import, which brings
its own ids, may store a content again; `imported_copy` is that id then, and 0 otherwise. `meaning_hash` leaves out what
a look-up may ignore: whether references are written inline, and `confluent:version`.
"""

schema_references = Table(
    "schema_references",
    metadata,
    name_column("context", primary_key=True),
    Column("schema_id", Integer, primary_key=True, autoincrement=False),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("subject_as_given", Text, nullable=False),
    name_column("referenced_context"),
    name_column("referenced_subject"),
    Column("referenced_version", Integer, nullable=False),
    ForeignKeyConstraint(["context", "schema_id"], ["schemas.context", "schemas.id"], ondelete="CASCADE"),
    Index("schema_references_by_target", "referenced_context", "referenced_subject", "referenced_version"),
)
"""The versions that a schema references."""

subjects = Table(
    "subjects",
    metadata,
    name_column("context", primary_key=True),
    name_column("name", primary_key=True),
    Column("latest_version", Integer),
    ForeignKeyConstraint(["context"], ["contexts.name"]),
)
"""Subjects; `latest_version` is the newest version that is not deleted.

A transaction that changes a subject's versions must hold the lock of its row.
"""

versions = Table(
    "versions",
    metadata,
    name_column("context", primary_key=True),
    name_column("subject", primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("schema_id", Integer, nullable=False),
    Column("is_deleted", Boolean, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    ForeignKeyConstraint(["context", "subject"], ["subjects.context", "subjects.name"]),
    ForeignKeyConstraint(["context", "schema_id"], ["schemas.context", "schemas.id"]),
    Index("versions_by_schema", "context", "schema_id", "subject", "version"),
    Index(
        "versions_alive",
        "context",
        "subject",
        "version",
        sqlite_where=text("NOT is_deleted"),
        postgresql_where=text("NOT is_deleted"),
    ),
)
"""The versions of subjects, and the schema of each."""

configs = Table(
    "configs",
    metadata,
    name_column("context", primary_key=True),
    name_column("subject", primary_key=True),
    Column("compatibility_level", String(32)),
    Column("alias", Text),
    Column("alias_for_deks", Text),
    Column("normalize", Boolean),
    Column("validate_fields", Boolean),
    Column("validate_new_schemas", Boolean),
    Column("validate_rules", Boolean),
    Column("compatibility_policy", String(32)),
    Column("compatibility_group", Text),
    Column("default_metadata", Text),
    Column("override_metadata", Text),
    Column("default_rule_set", Text),
    Column("override_rule_set", Text),
)
"""The config of a subject or, if the subject is empty, of a context."""

modes = Table(
    "modes",
    metadata,
    name_column("context", primary_key=True),
    name_column("subject", primary_key=True),
    Column("mode", String(32), nullable=False),
)
"""The mode of a subject or, if the subject is empty, of a context: which writes are allowed."""

keks = Table(
    "keks",
    metadata,
    name_column("name", primary_key=True),
    Column("kms_type", Text, nullable=False),
    Column("kms_key_id", Text, nullable=False),
    Column("kms_props", Text, nullable=False),
    Column("doc", Text),
    Column("is_shared", Boolean, nullable=False),
    Column("is_deleted", Boolean, nullable=False),
    Column("updated_ms", BigInteger, nullable=False),
)
"""Key encryption keys: where a key management service keeps each of them; `kms_props` is a JSON object.

A transaction that changes a key, or one of those that it wraps, must hold the lock of its row.
"""

deks = Table(
    "deks",
    metadata,
    name_column("kek_name", primary_key=True),
    name_column("subject", primary_key=True),
    Column("algorithm", String(16), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("encrypted_key_material", Text, nullable=False),
    Column("is_deleted", Boolean, nullable=False),
    Column("updated_ms", BigInteger, nullable=False),
    ForeignKeyConstraint(["kek_name"], ["keks.name"]),
    Index("deks_by_subject", "subject", "kek_name"),
)
"""Data encryption keys, wrapped; their plain form is never stored."""

associations = Table(
    "associations",
    metadata,
    Column("guid", String(36), primary_key=True),
    name_column("resource_name"),
    name_column("resource_namespace"),
    name_column("resource_id"),
    Column("resource_type", String(16), nullable=False),
    Column("association_type", String(16), nullable=False),
    name_column("context"),
    name_column("subject"),
    Column("lifecycle", String(8), nullable=False),
    Column("is_frozen", Boolean, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("updated_ms", BigInteger, nullable=False),
    Index("associations_by_resource", "resource_id", "resource_type", "association_type", unique=True),
    Index("associations_by_name", "resource_name", "resource_namespace"),
    Index("associations_by_subject", "context", "subject"),
)
"""The subjects that have the schemas of a resource's keys or values.

A transaction that adds an association, or deletes a subject's last version, must hold the lock of the subject's row.
"""

access_rules = Table(
    "access_rules",
    metadata,
    Column("rule_hash", String(64), primary_key=True),
    Column("principal", Text, nullable=False),
    Column("resource", Text, nullable=False),
    Column("resource_type", String(16), nullable=False),
    Column("pattern_type", String(16), nullable=False),
    Column("host", Text, nullable=False),
    Column("operation", String(32), nullable=False),
    Column("permission", String(8), nullable=False),
)
"""Who may do what. The hash is of all other columns: PostgreSQL's index entries have no room for them."""

access_rules_state = Table("access_rules_state", metadata, Column("version", BigInteger, primary_key=True))
"""One row with a number that every change of the access rules raises."""
