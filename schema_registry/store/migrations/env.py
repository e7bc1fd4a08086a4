"""Alembic's entry point: runs the revisions on the connection, and in the transaction, that `upgrade` passes in."""

from alembic import context

from schema_registry.store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
