"""Records of all formats that need no registry: both ways, one by one and as columns, which agree to the byte."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streams.formats.registry import RegistrySettings
from streams.model.sources import FormatName
from tests.support import sql_records
from tests.support.sql_format_laws import check_hostile, check_other_types, check_round_trip

FORMATS: list[FormatName] = ["JSON", "KAFKA", "DELIMITED", "PROTOBUF_NOSR"]
NO_REGISTRY = RegistrySettings()
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


@pytest.mark.parametrize("format_", FORMATS)
@settings(max_examples=40, deadline=None, suppress_health_check=SLOW)
@given(data=st.data())
def test_what_is_written_is_read_again(format_: FormatName, data: st.DataObject) -> None:
    source = data.draw(sql_records.sources(format_))
    rows = data.draw(st.lists(sql_records.rows(source), min_size=1, max_size=4))
    check_round_trip(source, rows, NO_REGISTRY)


@pytest.mark.parametrize("format_", FORMATS)
@settings(max_examples=40, deadline=None, suppress_health_check=SLOW)
@given(data=st.data())
def test_hostile_bytes_are_bad_records_and_nothing_else(format_: FormatName, data: st.DataObject) -> None:
    source = data.draw(sql_records.sources(format_))
    rows = data.draw(st.lists(sql_records.rows(source), min_size=1, max_size=3))
    check_hostile(source, rows, NO_REGISTRY, data)


@pytest.mark.parametrize("format_", FORMATS)
@settings(max_examples=40, deadline=None, suppress_health_check=SLOW)
@given(data=st.data())
def test_records_of_other_types_are_read_alike_one_by_one_and_as_columns(
    format_: FormatName, data: st.DataObject
) -> None:
    source = data.draw(sql_records.sources(format_))
    other = data.draw(sql_records.other_types(source))
    rows = data.draw(st.lists(sql_records.rows(source), min_size=1, max_size=4))
    check_other_types(source, other, rows, NO_REGISTRY)
