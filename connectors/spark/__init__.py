"""The Spark sink: topics become tables, exactly once."""
