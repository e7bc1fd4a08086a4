"""The tables of the key registry, as the newest migration leaves them."""

from sqlalchemy import BigInteger, Boolean, Column, ForeignKeyConstraint, Index, Integer, String, Table, Text

from schema_registry.store.tables import metadata, name_column

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
"""Keys that wrap other keys: where a key management service keeps each; `kms_props` is a JSON object.

Whoever changes a key or one of those it wraps holds the lock of its row.
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
"""Keys that encrypt records, wrapped; their plain form is never stored."""
