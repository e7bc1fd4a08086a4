"""All that an author of connectors, converters and transforms imports."""
