"""Guarded topics: records are appended only if they carry the id of a schema that is registered for their topic."""
