"""What there is to see: topics, groups, schemas, connectors, tables, the platform, as data for any display."""
