"""The connectors that Caudal ships."""
