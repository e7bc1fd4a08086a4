"""The tables, as the newest migration leaves them.

Names are compared and sorted byte by byte on every database, so that subjects come in one order everywhere.
`context` is a context's name with its leading dot (`.` is the default one); `subject` is the name inside of it.
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
    """A column for names: bytewise order on PostgreSQL as on SQLite."""
    bytewise = String().with_variant(String(collation="C"), "postgresql")
    return Column(name, bytewise, primary_key=primary_key, nullable=nullable)


contexts = Table(
    "contexts",
    metadata,
    name_column("name", primary_key=True),
    Column("last_id", Integer, nullable=False),
)
"""Spaces of subjects, each with its own counter of schema ids."""

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
"""Contents: what an id stands for. Never changed, only added and, with their last version, removed.

`content_hash` covers all that makes a schema another schema, and one content has one id: only an import, which brings
its own ids, may store it again (`imported_copy` is that id then, else 0). `meaning_hash` leaves out what a look-up may
overlook (references that are written inline, `confluent:version`).
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
"""Which versions a schema mentions."""

subjects = Table(
    "subjects",
    metadata,
    name_column("context", primary_key=True),
    name_column("name", primary_key=True),
    Column("latest_version", Integer),
    ForeignKeyConstraint(["context"], ["contexts.name"]),
)
"""Names under which versions follow each other; `latest_version` is the newest that is not deleted.

Whoever changes a subject's versions holds the lock of its row.
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
"""Which schema is which version of a subject."""

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
"""What holds for a subject or, with an empty subject, for a context."""

modes = Table(
    "modes",
    metadata,
    name_column("context", primary_key=True),
    name_column("subject", primary_key=True),
    Column("mode", String(32), nullable=False),
)
"""Which writes are allowed in a subject or, with an empty subject, in a context."""
