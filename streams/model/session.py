"""How a session of Spark has to be set for the SQL that we write."""

from typing import Final

SESSION: Final = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.timeType.enabled": "true",
    "spark.sql.variant.allowDuplicateKeys": "true",
}
"""What sessions need in which the expressions run: integers wrap around, what cannot be computed is NULL."""
