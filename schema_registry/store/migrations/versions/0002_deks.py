"""Keys that encrypt records, and keys that wrap them."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the tables of the key registry."""
    op.create_table(
        "keks",
        _name("name"),
        sa.Column("kms_type", sa.Text, nullable=False),
        sa.Column("kms_key_id", sa.Text, nullable=False),
        sa.Column("kms_props", sa.Text, nullable=False),
        sa.Column("doc", sa.Text),
        sa.Column("is_shared", sa.Boolean, nullable=False),
        sa.Column("is_deleted", sa.Boolean, nullable=False),
        sa.Column("updated_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", name="keks_key"),
    )
    op.create_table(
        "deks",
        _name("kek_name"),
        _name("subject"),
        sa.Column("algorithm", sa.String(16), nullable=False),
        sa.Column("version", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("encrypted_key_material", sa.Text, nullable=False),
        sa.Column("is_deleted", sa.Boolean, nullable=False),
        sa.Column("updated_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("kek_name", "subject", "algorithm", "version", name="deks_key"),
        sa.ForeignKeyConstraint(["kek_name"], ["keks.name"], name="deks_keks"),
    )
    op.create_index("deks_by_subject", "deks", ["subject", "kek_name"])


def _name(name: str) -> "sa.Column[str]":
    return sa.Column(name, sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False)
