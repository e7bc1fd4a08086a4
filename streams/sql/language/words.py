"""The words of the language, and the one that a user probably meant."""

import difflib
from collections.abc import Iterable
from itertools import islice
from typing import Final


def words(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


NON_RESERVED: Final = words(
    """
    ADD ALTER ANALYZE ARRAY ASSERT CHANGES COLUMN COLUMNS DATE DAY DEFINE EMIT ESCAPE EXPLAIN FINAL FUNCTION
    FUNCTIONS GRACE HEADER HEADERS HOUR ID IF INTEGER INTERVAL KEY MAP MINUTE MONTH PARTITION PARTITIONS PERIOD
    PLUGINS PRIMARY REPLACE RESET SCHEMA SECOND SESSION SET SHOW SINK SOURCE STRING STRUCT SUBJECT SYSTEM TABLES
    TIME TIMEOUT TIMESTAMP TYPE TYPES UNDEFINE VARIABLES YEAR ZONE PAUSE RESUME
    """
)
"""Words of the language that may also be names."""
_NAMES: Final = words(
    """
    ALL BEGINNING CATALOG CONNECTOR CONNECTORS DAYS DECIMAL DELETE EXPORT EXTENDED HOURS INSERT LIST LOAD
    MATERIALIZED MILLISECOND MILLISECONDS MINUTES MONTHS NAMESPACE PRINT PROPERTIES QUERIES QUERY RENAME
    RETENTION RUN SAMPLE SCRIPT SECONDS SIZE STREAM STREAMS TABLE TERMINATE TO TOPIC TOPICS UNSET VALUES VIEW
    YEARS ADVANCE TUMBLING HOPPING DESCRIBE DROP CREATE
    """
)
"""Reserved words that people use as names: they are told about backquotes."""
RESERVED: Final = _NAMES | words(
    """
    AND AS AT BETWEEN BY CASE CAST DISTINCT ELSE END EXISTS FALSE FROM FULL GROUP HAVING IN INNER INTO IS JOIN
    LEFT LIKE LIMIT NOT NULL ON OR OUTER RIGHT SELECT THEN TRUE WHEN WHERE WINDOW WITH WITHIN
    """
)
KEYWORDS: Final = NON_RESERVED | RESERVED

STATEMENTS: Final = (
    "SELECT", "CREATE", "INSERT", "DESCRIBE", "PRINT", "EXPLAIN", "SHOW", "LIST", "TERMINATE", "PAUSE", "RESUME",
    "DROP", "SET", "UNSET", "DEFINE", "UNDEFINE", "ASSERT", "ALTER", "RUN",
)  # fmt: skip
"""The words that statements begin with."""
_LONGEST: Final = 40
"""Longer words are no typing mistakes, and would take long to compare."""


_MOST_COMPARED: Final = 200


def is_likely_name(word: str) -> bool:
    """Whether a reserved word is more probably meant as a name than as a part of the statement."""
    return word in _NAMES


def closest(word: str, candidates: Iterable[str], *, similarity: float = 0.7) -> str | None:
    """The candidate that was probably meant."""
    if not word or len(word) > _LONGEST:
        return None
    found = difflib.get_close_matches(word.upper(), islice(candidates, _MOST_COMPARED), n=1, cutoff=similarity)
    return found[0] if found else None


def did_you_mean(word: str, candidates: Iterable[str], *, similarity: float = 0.7) -> str:
    """A sentence to append to a message, with the space before it; empty if nothing is close."""
    found = closest(word, candidates, similarity=similarity)
    return f" Did you mean {found}?" if found else ""


def listed(names: Iterable[str], *, last: str = "or") -> str:
    """Names as an enumeration in a sentence."""
    given = list(dict.fromkeys(names))
    return given[0] if len(given) == 1 else f"{', '.join(given[:-1])} {last} {given[-1]}"
