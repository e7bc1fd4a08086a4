"""What is counted, put together from several places."""

import pytest

from connect.runtime.counters import TaskCounters, merged_counters


def test_changes_are_what_is_to_be_added() -> None:
    before = TaskCounters(total_retries=2, put_batch_ms_max=5.0, partition_count=3)
    after = TaskCounters(total_retries=5, put_batch_ms_max=7.0, partition_count=1, sink_record_read=4)
    changes = after.since(before)
    assert changes == {"total_retries": 3, "put_batch_ms_max": 7.0, "partition_count": 1, "sink_record_read": 4}
    before.add(changes)
    assert before == after


def test_nothing_has_changed() -> None:
    assert TaskCounters(total_retries=2).since(TaskCounters(total_retries=2)) == {}


def test_sums_are_added_gauges_replaced_and_the_largest_kept() -> None:
    counted = [
        {"sink_record_send": 2, "sink_record_lag_max": 9, "last_error_timestamp": 50},
        {"sink_record_send": 3, "sink_record_lag_max": 1, "last_error_timestamp": 40},
    ]
    assert merged_counters(counted) == {"sink_record_send": 5, "sink_record_lag_max": 1, "last_error_timestamp": 50}


def test_what_is_counted_in_whole_numbers_stays_whole() -> None:
    counters = TaskCounters()
    counters.add({"sink_record_send": 2.0, "put_batch_ms_sum": 1.5})
    assert (repr(counters.sink_record_send), counters.put_batch_ms_sum) == ("2", 1.5)


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(KeyError, match="sink_records"):
        TaskCounters().add({"sink_records": 1})
