"""Specs of queries: names of what they use in the cluster."""

from typing import Any

import pytest

from streams.errors import WrongOption
from streams.model.plan import QueryPlan
from streams.spark.queries.spec import QuerySpec, cluster_of, query_folder
from tests.support.streams_queries import source


def _spec(name: str = "CSAS_1", **more: Any) -> QuerySpec:
    plan = QueryPlan(name=name, inputs=(), steps=(), group="_streams-default_CSAS_1")
    return QuerySpec(
        plan=plan, cluster={"bootstrap.servers": "b:1", "sasl.password": "hidden"}, folder="/kept/", **more
    )


def test_it_survives_json_and_shows_no_secrets() -> None:
    import msgspec

    assert QuerySpec.of_json(msgspec.to_builtins(_spec())) == _spec()
    assert "hidden" not in repr(_spec())


def test_checkpoints_are_in_folders_by_name_and_generation() -> None:
    assert _spec(generation=3).home == "/kept/CSAS_1/3"
    assert query_folder("/kept", "a/b") == "/kept/a%2Fb"


def test_markers_tell_the_batch_of_this_generation_alone() -> None:
    spec = _spec(generation=1)
    assert (spec.marker(7), spec.batch_of("1:7"), spec.batch_of(spec.marker(-1))) == ("1:7", 7, -1)
    for other in ("0:7", "1:7:CSAS_1-2", "", "1:", "1:x", "operator"):
        assert spec.batch_of(other) is None


def test_a_query_that_ends_with_its_client_goes_on_without_records_that_were_deleted() -> None:
    from msgspec.structs import replace

    sink = source("internal", value={"N": "BIGINT"})
    stored = _spec(transactional=False)
    for plan, is_transient in (
        (stored.plan, True),
        (replace(stored.plan, sink=sink), False),
        (replace(stored.plan, sink=sink, is_sink_internal=True), True),
    ):
        assert replace(stored, plan=plan).is_transient is is_transient
    assert not replace(
        stored, plan=replace(stored.plan, sink=sink, is_sink_internal=True), transactional=True
    ).is_transient


def test_the_properties_of_the_cluster_are_those_of_java() -> None:
    cluster = cluster_of(
        {"bootstrap.servers": " b:1 ", "sasl.mechanism": "PLAIN", "isolation.level": "read_uncommitted"}
    )
    assert (cluster.bootstrap_servers, dict(cluster.properties)) == ("b:1", {"sasl.mechanisms": "PLAIN"})
    assert cluster.isolation == "read_committed"
    with pytest.raises(WrongOption, match=r"bootstrap\.servers"):
        cluster_of({})
