"""Plans as EXPLAIN shows them."""

from streams.model.plan import Input, LookupStep, QueryPlan, SqlStep
from streams.model.sources import Column, Format, Source
from streams.server.plan_text import execution_plan, sql_texts


def _source(name: str) -> Source:
    return Source(
        name=name,
        kind="STREAM",
        topic=name.lower(),
        key_format=Format(name="KAFKA"),
        value_format=Format(name="JSON"),
        key=(Column("K", "STRING"),),
        value=(Column("N", "BIGINT"),),
    )


def test_the_step_that_writes_comes_first_and_what_is_read_last() -> None:
    plan = QueryPlan(
        name="CSAS_OUT_1",
        inputs=(Input(view="A", source=_source("A")),),
        steps=(
            SqlStep(view="big", text="SELECT * FROM A WHERE N > 1"),
            LookupStep(view="joined", input="big", table=_source("T"), key="K", columns=(("N", "T_N"),)),
            SqlStep(view="out", text="SELECT K, sum(N) AS N FROM joined GROUP BY K"),
        ),
        sink=_source("OUT"),
    )
    assert execution_plan((plan,)).splitlines() == [
        " > [ SINK ] | Schema: `K` STRING KEY, `N` BIGINT | Logger: CSAS_OUT_1.OUT",
        "\t\t > [ AGGREGATE ] | Logger: CSAS_OUT_1.out",
        "\t\t\t\t > [ JOIN ] | T by `K` | Logger: CSAS_OUT_1.joined",
        "\t\t\t\t\t\t > [ FILTER ] | Logger: CSAS_OUT_1.big",
        "\t\t\t\t\t\t\t\t > [ SOURCE ] | Schema: `K` STRING KEY, `N` BIGINT | Topic: a | Logger: CSAS_OUT_1.A",
    ]
    assert sql_texts((plan,)).startswith("-- CSAS_OUT_1.big\nSELECT * FROM A WHERE N > 1\n\n-- CSAS_OUT_1.out\n")
