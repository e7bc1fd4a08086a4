"""Everything that authors of connectors, converters and transforms import."""
