"""Keys and values of topics as typed columns: by the schema that each names, or by a format that needs none."""
