"""Which subjects hold the schemas of which resources."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create the table of associations."""
    op.create_table(
        "associations",
        sa.Column("guid", sa.String(36), nullable=False),
        _name("resource_name"),
        _name("resource_namespace"),
        _name("resource_id"),
        sa.Column("resource_type", sa.String(16), nullable=False),
        sa.Column("association_type", sa.String(16), nullable=False),
        _name("context"),
        _name("subject"),
        sa.Column("lifecycle", sa.String(8), nullable=False),
        sa.Column("is_frozen", sa.Boolean, nullable=False),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.Column("updated_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("guid", name="associations_key"),
    )
    resource = ["resource_id", "resource_type", "association_type"]
    op.create_index("associations_by_resource", "associations", resource, unique=True)
    op.create_index("associations_by_name", "associations", ["resource_name", "resource_namespace"])
    op.create_index("associations_by_subject", "associations", ["context", "subject"])


def _name(name: str) -> "sa.Column[str]":
    return sa.Column(name, sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False)
