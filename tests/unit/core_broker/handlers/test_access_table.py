"""The table of access covers every API, and names fields that the requests have."""

from pathlib import Path

import pytest

from core_broker.errors import ErrorCode
from core_broker.handlers import access_table
from core_broker.handlers.access_table import (
    BROKER_ROWS,
    CONTROLLER_NOTES,
    CONTROLLER_ROWS,
    NOTES,
    Check,
    Row,
)
from core_broker.handlers.api import Api
from core_broker.handlers.table import BROKER_APIS, CONTROLLER_APIS
from core_broker.security.operations import Operation, ResourceType

_OF_LISTENERS = [
    pytest.param(api, rows, id=f"{kind}-{api.name}")
    for kind, apis, rows in (("broker", BROKER_APIS, BROKER_ROWS), ("controller", CONTROLLER_APIS, CONTROLLER_ROWS))
    for api in apis
]
_BETWEEN_NODES = {1, 52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82}


@pytest.mark.parametrize("api,rows", _OF_LISTENERS)
def test_every_api_has_a_row_that_names_it(api: Api, rows: dict[int, Row]) -> None:
    assert rows[api.key].name == api.name


@pytest.mark.parametrize(
    "rows,notes", [(BROKER_ROWS, NOTES), (CONTROLLER_ROWS, {**NOTES, **CONTROLLER_NOTES})], ids=["broker", "controller"]
)
def test_an_api_that_needs_nothing_says_why(rows: dict[int, Row], notes: dict[int, str]) -> None:
    without = [key for key, row in rows.items() if not row.needs]
    assert all(notes.get(key, "").startswith("none: ") for key in without)


@pytest.mark.parametrize("api,rows", _OF_LISTENERS)
def test_the_name_of_the_resource_is_a_field_of_the_request(api: Api, rows: dict[int, Row]) -> None:
    for need in rows[api.key].needs:
        fields = {need.named_by, need.unless} - {""}
        assert fields <= set(api.request.__struct_fields__)
        is_cluster = need.kind is ResourceType.CLUSTER
        assert not need.is_whole or is_cluster == (need.named_by == "")


def test_raw_handlers_have_no_checks_of_the_whole_request() -> None:
    """Dispatch does not decode their requests, and so cannot check them."""
    raw = [BROKER_ROWS[api.key] for api in BROKER_APIS if api.raw_handler is not None]
    assert raw
    assert not any(need.is_whole for row in raw for need in row.needs)


def test_controllers_hand_nothing_to_clients_that_are_no_nodes() -> None:
    only = Check(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
    assert {key for key, row in CONTROLLER_ROWS.items() if [need.any_of for need in row.needs] == [(only,)]} == (
        _BETWEEN_NODES
    )


def test_questions_about_one_kind_of_resource_can_be_told_apart() -> None:
    for row in (*CONTROLLER_ROWS.values(), *BROKER_ROWS.values()):
        asked = [(need.kind, need.purpose) for need in row.needs if not need.is_whole]
        assert len(asked) == len(set(asked)), row.name


def test_a_refusal_has_the_error_of_the_resource() -> None:
    errors = {row.name: [need.denied for need in row.needs] for row in BROKER_ROWS.values()}
    assert errors["InitProducerId"] == [
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ]
    assert errors["CreateTopics"][0] is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert errors["OffsetDelete"] == [ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED]


def test_no_handler_names_an_operation() -> None:
    """They ask through `access`; only the table, and what turns rights into bits, know operations."""
    folder = Path(access_table.__file__).parent
    naming = {path.stem for path in folder.glob("*.py") if "Operation" in path.read_text(encoding="utf-8")}
    assert naming == {"access_table", "authorized_operations"}
