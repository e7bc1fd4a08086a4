"""The connectors that Caudal ships; each folder has its config, its source or sink, and a README."""
