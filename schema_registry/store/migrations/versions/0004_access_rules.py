"""Who may do what."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create the table of access rules, and the number of their last change."""
    op.create_table(
        "access_rules",
        sa.Column("rule_hash", sa.String(64), nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("resource", sa.Text, nullable=False),
        sa.Column("resource_type", sa.String(16), nullable=False),
        sa.Column("pattern_type", sa.String(16), nullable=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("operation", sa.String(32), nullable=False),
        sa.Column("permission", sa.String(8), nullable=False),
        sa.PrimaryKeyConstraint("rule_hash", name="access_rules_key"),
    )
    op.create_table(
        "access_rules_state",
        sa.Column("version", sa.BigInteger, nullable=False, autoincrement=False),
        sa.PrimaryKeyConstraint("version", name="access_rules_state_key"),
    )
    op.execute("INSERT INTO access_rules_state (version) VALUES (0)")
