"""The table of associations, as the newest migration leaves it."""

from sqlalchemy import BigInteger, Boolean, Column, Index, String, Table

from schema_registry.store.tables import metadata, name_column

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
"""Which subject holds the schemas of a resource's keys or values.

Whoever adds an association, or deletes the last version of a subject, holds the lock of the subject's row.
"""
