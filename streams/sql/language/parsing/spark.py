"""Which statements are Spark's own: they pass through as they are.

Three rules, in this order:

* The first words decide where they are Spark's alone: MERGE, WITH, CREATE VIEW, SHOW DATABASES, ...
* CREATE TABLE is Spark's when it says how Spark stores it (USING, PARTITIONED BY, LOCATION, ...).
* A SELECT is ours when it can be parsed as ours. Otherwise it is Spark's when it uses what only Spark has (ORDER BY,
  UNION, a subquery, OVER, no FROM, ...) and nothing that only queries over topics have (EMIT, WITHIN, WINDOW TUMBLING).
  Otherwise it is ours, with a mistake in it.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from streams.sql.language.tokens import NUMBERS, Kind, Token
from streams.sql.language.words import KEYWORDS, words

FIRST_WORDS: Final = words(
    """
    ANALYZE CACHE CALL CLEAR COMMENT COPY DECLARE DELETE DESC EXECUTE FROM GRANT LOAD MERGE MSCK OPTIMIZE
    REFRESH REPAIR RESET REVOKE TRUNCATE UNCACHE UPDATE USE VACUUM VALUES WITH
    """
)
_SECOND_WORDS: Final = {
    "CREATE": words(
        """
    DATABASE EXTERNAL FUNCTION GLOBAL INDEX MATERIALIZED NAMESPACE SCHEMA TEMP TEMPORARY VIEW
    """
    ),
    "DROP": words("DATABASE FUNCTION INDEX MATERIALIZED NAMESPACE SCHEMA TEMPORARY VARIABLE VIEW"),
    "ALTER": words("DATABASE NAMESPACE SCHEMA VIEW"),
    "INSERT": frozenset({"OVERWRITE"}),
    "SHOW": words(
        """
    CATALOGS COLUMNS CREATE CURRENT DATABASES NAMESPACES PARTITIONS SCHEMAS TABLE TBLPROPERTIES USER VIEWS
    """
    ),
    "DESCRIBE": words("DATABASE DETAIL FORMATTED HISTORY NAMESPACE QUERY SCHEMA TABLE"),
    "EXPLAIN": words("CODEGEN COST EXTENDED FORMATTED"),
}
_STORAGE: Final = words("USING PARTITIONED CLUSTERED LOCATION STORED TBLPROPERTIES LIKE OPTIONS")
_ALTERATIONS: Final = words("CHANGE CLUSTER RECOVER RENAME REPLACE SET UNSET")
_PAIRS_OVER_TOPICS: Final = frozenset(
    {("EMIT", "CHANGES"), ("EMIT", "FINAL"), ("WINDOW", "TUMBLING"), ("WINDOW", "HOPPING"), ("WINDOW", "SESSION")}
)
_ONLY_SPARK: Final = words(
    """
    ANTI CROSS DISTRIBUTE DIV EXCEPT FETCH GROUPING ILIKE INTERSECT LATERAL MINUS NATURAL PIVOT QUALIFY REGEXP
    RLIKE SEMI TABLESAMPLE UNION UNPIVOT
    """
)
_PAIRS: Final = frozenset(
    {
        ("ORDER", "BY"),
        ("SORT", "BY"),
        ("CLUSTER", "BY"),
        ("OVER", "("),
        ("OVER", "W"),
        ("SELECT", "DISTINCT"),
        ("(", "SELECT"),
        ("(", "WITH"),
        ("(", "DISTINCT"),
        ("ROLLUP", "("),
        ("CUBE", "("),
        ("USING", "("),
        ("FILTER", "("),
        ("LIMIT", "ALL"),
        ("FROM", "("),
        ("JOIN", "("),
    }
)
_SYMBOLS: Final = frozenset({"::", "<=>", "|>"})
NO_FROM: Final = "no FROM"
_MOST_WITHOUT_FROM: Final = 200


def spark_sign(tokens: Sequence[Token]) -> str | None:
    """The word that makes a statement Spark's, if its beginning does; a SELECT is looked at after it was not parsed."""
    first = _word(tokens, 0)
    if first in FIRST_WORDS:
        return first
    second_at = 3 if [_word(tokens, at) for at in (1, 2)] == ["OR", "REPLACE"] else 1
    second = _word(tokens, second_at)
    if second in _SECOND_WORDS.get(first, ()):
        # Behind DESCRIBE and EXPLAIN these words may also be names of ours: DESCRIBE history EXTENDED.
        is_name = first in {"DESCRIBE", "EXPLAIN"} and (
            len(tokens) <= second_at + 2 or _word(tokens, second_at + 1) == "EXTENDED"
        )
        if not is_name:
            return f"{first} {second}"
    return _sign_of_table(tokens, first, second, second_at)


def _sign_of_table(tokens: Sequence[Token], first: str, second: str, second_at: int) -> str | None:
    """The word by which a statement about tables or settings is Spark's."""
    match first, second:
        case "CREATE", "TABLE":
            exists = 3 if _word(tokens, second_at + 1) == "IF" and _word(tokens, second_at + 2) == "NOT" else 0
            return _storage(tokens, second_at + 2 + exists)
        case "ALTER", "TABLE":
            at = 3
            while at < len(tokens) and tokens[at].value == ".":
                at += 2
            return _word(tokens, at) if _word(tokens, at) in _ALTERATIONS else None
        case "INSERT", "INTO" if _word(tokens, 2) == "TABLE" and tokens[min(3, len(tokens) - 1)].kind is Kind.WORD:
            return "INSERT INTO TABLE"
        case "SET", "SPARK" | "TIME" | "VAR" | "VARIABLE":
            return f"SET {second}"
        case _:
            return None


def _storage(tokens: Sequence[Token], start: int) -> str | None:
    depth = 0
    for at in range(start, min(len(tokens), start + 10_000)):
        token = tokens[at]
        depth += _depth_change(token)
        if depth or token.kind is not Kind.WORD:
            continue
        if token.value in {"WITH", "AS"}:
            return None
        if token.value in _STORAGE:
            return token.value
    return None


def _depth_change(token: Token) -> int:
    if token.kind is not Kind.SYMBOL:
        return 0
    return {"(": 1, ")": -1}.get(token.value, 0)


class Sign(NamedTuple):
    """What shows that a SELECT is Spark's, and where it stands in the text."""

    words: str
    start: int
    end: int


def is_over_topics(tokens: Sequence[Token]) -> bool:
    """Whether a SELECT has what only queries over topics have."""
    return any(
        token.kind is Kind.WORD
        and (
            (token.value, following.value) in _PAIRS_OVER_TOPICS
            or (token.value == "WITHIN" and (following.kind in NUMBERS or following.value == "("))
        )
        for token, following in pairwise(tokens)
    )


def spark_sign_of_select(tokens: Sequence[Token]) -> Sign | None:
    """The first thing in a SELECT that only Spark knows."""
    last = tokens[-1]
    for token, following, third in zip(tokens, [*tokens[1:], last], [*tokens[2:], last, last], strict=True):
        if token.kind in {Kind.WORD, Kind.SYMBOL} and (words := _words_of_spark(token, following, third)):
            return Sign(words, token.start, following.end)
    if not any(token.kind is Kind.WORD and token.value == "FROM" for token in tokens) and _can_be_without_from(tokens):
        return Sign(NO_FROM, tokens[0].start, tokens[0].end)
    return None


def _words_of_spark(token: Token, following: Token, third: Token) -> str | None:
    if (token.value, following.value) in _PAIRS:
        return f"{token.value} {following.value}" if following.value.isalpha() else token.value
    if token.value in {"FROM", "JOIN"} and third.value == "." and third.kind is Kind.SYMBOL:
        return "a name with a database"
    if token.value == "OFFSET" and following.kind is Kind.INTEGER:
        return "OFFSET"
    if token.kind is Kind.SYMBOL:
        return token.value if token.value in _SYMBOLS else None
    is_operand = following.kind is Kind.END or following.value in {".", ",", ")", "FROM"}
    return token.value if token.value in _ONLY_SPARK and not is_operand else None


def _can_be_without_from(tokens: Sequence[Token]) -> bool:
    """SELECT 1, SELECT current_date() AS today: short, and without columns, whose FROM would have been forgotten."""
    if len(tokens) < 3 or len(tokens) > _MOST_WITHOUT_FROM:
        return False
    return not any(
        token.kind in {Kind.WORD, Kind.NAME}
        and token.value not in KEYWORDS
        and before.value != "AS"
        and following.value != "("
        for before, token, following in zip(tokens, tokens[1:], tokens[2:], strict=False)
    )


def _word(tokens: Sequence[Token], at: int) -> str:
    return tokens[at].value if at < len(tokens) and tokens[at].kind is Kind.WORD else ""
