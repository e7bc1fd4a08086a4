"""Contexts, schemas, references, subjects, versions, configs and modes."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables of the registry itself."""
    _create_schemas()
    _create_subjects()
    _create_scopes()


def _name(name: str) -> "sa.Column[str]":
    return sa.Column(name, sa.String().with_variant(sa.String(collation="C"), "postgresql"), nullable=False)


def _create_schemas() -> None:
    contexts = op.create_table(
        "contexts",
        _name("name"),
        sa.Column("last_id", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("name", name="contexts_key"),
    )
    op.bulk_insert(contexts, [{"name": ".", "last_id": 0}])
    op.create_table(
        "schemas",
        _name("context"),
        sa.Column("id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("guid", sa.String(36), nullable=False),
        sa.Column("content_hash", sa.String(64), nullable=False),
        sa.Column("imported_copy", sa.Integer, nullable=False),
        sa.Column("meaning_hash", sa.String(64), nullable=False),
        sa.Column("schema_type", sa.String(8), nullable=False),
        sa.Column("schema_text", sa.Text, nullable=False),
        sa.Column("metadata", sa.Text),
        sa.Column("rule_set", sa.Text),
        sa.Column("has_references", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("context", "id", name="schemas_key"),
        sa.ForeignKeyConstraint(["context"], ["contexts.name"], name="schemas_contexts"),
    )
    op.create_index("schemas_by_content", "schemas", ["context", "content_hash", "imported_copy"], unique=True)
    op.create_index("schemas_by_meaning", "schemas", ["context", "meaning_hash"])
    op.create_index("schemas_by_guid", "schemas", ["guid"])
    op.create_table(
        "schema_references",
        _name("context"),
        sa.Column("schema_id", sa.Integer, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("subject_as_given", sa.Text, nullable=False),
        _name("referenced_context"),
        _name("referenced_subject"),
        sa.Column("referenced_version", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("context", "schema_id", "position", name="schema_references_key"),
        sa.ForeignKeyConstraint(
            ["context", "schema_id"],
            ["schemas.context", "schemas.id"],
            name="schema_references_schemas",
            ondelete="CASCADE",
        ),
    )
    op.create_index(
        "schema_references_by_target",
        "schema_references",
        ["referenced_context", "referenced_subject", "referenced_version"],
    )


def _create_subjects() -> None:
    op.create_table(
        "subjects",
        _name("context"),
        _name("name"),
        sa.Column("latest_version", sa.Integer),
        sa.PrimaryKeyConstraint("context", "name", name="subjects_key"),
        sa.ForeignKeyConstraint(["context"], ["contexts.name"], name="subjects_contexts"),
    )
    op.create_table(
        "versions",
        _name("context"),
        _name("subject"),
        sa.Column("version", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("schema_id", sa.Integer, nullable=False),
        sa.Column("is_deleted", sa.Boolean, nullable=False),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("context", "subject", "version", name="versions_key"),
        sa.ForeignKeyConstraint(
            ["context", "subject"], ["subjects.context", "subjects.name"], name="versions_subjects"
        ),
        sa.ForeignKeyConstraint(["context", "schema_id"], ["schemas.context", "schemas.id"], name="versions_schemas"),
    )
    op.create_index("versions_by_schema", "versions", ["context", "schema_id", "subject", "version"])
    op.create_index(
        "versions_alive",
        "versions",
        ["context", "subject", "version"],
        sqlite_where=sa.text("NOT is_deleted"),
        postgresql_where=sa.text("NOT is_deleted"),
    )


def _create_scopes() -> None:
    op.create_table(
        "configs",
        _name("context"),
        _name("subject"),
        sa.Column("compatibility_level", sa.String(32)),
        sa.Column("alias", sa.Text),
        sa.Column("alias_for_deks", sa.Text),
        sa.Column("normalize", sa.Boolean),
        sa.Column("validate_fields", sa.Boolean),
        sa.Column("validate_new_schemas", sa.Boolean),
        sa.Column("validate_rules", sa.Boolean),
        sa.Column("compatibility_policy", sa.String(32)),
        sa.Column("compatibility_group", sa.Text),
        sa.Column("default_metadata", sa.Text),
        sa.Column("override_metadata", sa.Text),
        sa.Column("default_rule_set", sa.Text),
        sa.Column("override_rule_set", sa.Text),
        sa.PrimaryKeyConstraint("context", "subject", name="configs_key"),
    )
    op.create_table(
        "modes",
        _name("context"),
        _name("subject"),
        sa.Column("mode", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("context", "subject", name="modes_key"),
    )
