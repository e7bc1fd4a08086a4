"""Whatever is written in a query: it has a plan, or an error at a place in the text, and nothing else happens."""

from contextlib import suppress
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streams.errors import StatementError
from streams.sql.analysis.values import check_values
from streams.sql.functions.table import FUNCTIONS
from streams.sql.language.checks.statements import check_statement
from streams.sql.language.tree import expressions as tree
from streams.sql.language.tree.node import Identifier
from streams.sql.language.tree.queries import Emit, Query, QuerySource, SelectExpression
from streams.sql.language.tree.statements import InsertValues
from streams.sql.planning.queries import plan_pull, plan_push
from tests.support.sql_catalog import KnownSources
from tests.support.sql_trees import EXPRESSIONS

SOURCES = (
    """CREATE STREAM S (A STRING KEY, B INT, C DOUBLE, D ARRAY<INT>, E MAP<STRING, INT>, F STRUCT<A INT>,
    PRICE DECIMAL(4, 2), T TIMESTAMP) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON')""",
    "CREATE TABLE T (A STRING PRIMARY KEY, B INT, G BOOLEAN) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON')",
)
CATALOG = KnownSources(*SOURCES)
CATALOG.materialize("T")
_COLUMNS = st.sampled_from(["A", "B", "C", "D", "E", "F", "PRICE", "T", "ROWTIME"])
_CALLS: st.SearchStrategy[Any] = st.builds(
    tree.FunctionCall,
    st.sampled_from(sorted(FUNCTIONS)).map(Identifier),
    st.lists(st.one_of(EXPRESSIONS, _COLUMNS.map(lambda name: tree.ColumnReference(Identifier(name)))), max_size=3).map(
        tuple
    ),
)
_WRITTEN = st.one_of(EXPRESSIONS, _CALLS)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(_WRITTEN, _WRITTEN, st.booleans(), st.sampled_from(["S", "T"]))
def test_plan_or_error(one: Any, other: Any, is_grouped: bool, source: str) -> None:
    count = SelectExpression(tree.FunctionCall(Identifier("COUNT"), (tree.AllRows(),)), Identifier("N"))
    items = (SelectExpression(one, Identifier("X1")), count) if is_grouped else (SelectExpression(one),)
    group_by = (one,) if is_grouped else ()
    push = Query(items, QuerySource(Identifier(source)), where=other, group_by=group_by, emit=Emit.CHANGES)
    pull = Query(items, QuerySource(Identifier(source)), where=other, group_by=group_by)
    if not check_statement(push):
        with suppress(StatementError):
            plan_push(push, CATALOG, CATALOG.facts, CATALOG.options())
        with suppress(StatementError):
            plan_pull(pull, CATALOG, CATALOG.facts, CATALOG.options())


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(_WRITTEN)
def test_value_or_error(written: Any) -> None:
    source = CATALOG.known["S"]
    for column in source.columns:
        statement = InsertValues(Identifier("S"), (Identifier(column.name),), (written,))
        if not check_statement(statement):
            with suppress(StatementError):
                check_values(statement, source, CATALOG)
