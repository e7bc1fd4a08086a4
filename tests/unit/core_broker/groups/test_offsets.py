from core_broker.groups.offsets import CommittedOffset, OffsetStore


def offset(value: int, log_offset: int = 0) -> CommittedOffset:
    return CommittedOffset(value, log_offset=log_offset)


def committed(store: OffsetStore, group: str = "g", topic: str = "t", partition: int = 0) -> int | None:
    found = store.get(group, topic, partition)
    return found.offset if found is not None else None


def test_later_commit_in_the_log_wins_whatever_the_order_of_arrival() -> None:
    store = OffsetStore()
    store.put("g", "t", 0, offset(20, log_offset=2))
    store.put("g", "t", 0, offset(10, log_offset=1))
    assert committed(store) == 20


def test_removed_offset_leaves_no_trace_of_its_group() -> None:
    store = OffsetStore()
    store.put("g", "t", 0, offset(1))
    store.remove("g", "t", 0)
    assert not store.has_any("g")
    assert store.of_group("g") == {}


def test_pending_offset_counts_only_once_its_transaction_is_committed() -> None:
    store = OffsetStore()
    store.put_pending(7, "g", "t", 0, offset(5, log_offset=1))
    assert store.is_pending("g", "t", 0)
    assert not store.is_pending("g", "t", 1)
    assert committed(store) is None
    assert store.complete(7, commit=True) == ["g"]
    assert committed(store) == 5
    assert not store.is_pending("g", "t", 0)


def test_offset_of_an_aborted_transaction_is_dropped() -> None:
    store = OffsetStore()
    store.put("g", "t", 0, offset(1, log_offset=0))
    store.put_pending(7, "g", "t", 0, offset(5, log_offset=1))
    store.complete(7, commit=False)
    assert committed(store) == 1
    assert not store.has_pending("g")


def test_plain_commit_after_a_transactional_one_survives_the_marker() -> None:
    store = OffsetStore()
    store.put_pending(7, "g", "t", 0, offset(5, log_offset=1))
    store.put("g", "t", 0, offset(9, log_offset=2))
    store.complete(7, commit=True, log_offset=3)
    assert committed(store) == 9


def test_two_transactions_hold_the_same_partition_until_both_have_ended() -> None:
    store = OffsetStore()
    store.put_pending(7, "g", "t", 0, offset(5, log_offset=1))
    store.put_pending(8, "g", "t", 0, offset(6, log_offset=2))
    store.complete(7, commit=True)
    assert store.is_pending("g", "t", 0)
    store.complete(8, commit=True)
    assert not store.is_pending("g", "t", 0)
    assert committed(store) == 6


def test_removed_pending_offset_is_not_committed() -> None:
    store = OffsetStore()
    store.put_pending(7, "g", "t", 0, offset(5))
    store.remove_pending(7, "g", "t", 0)
    assert not store.has_pending("g")
    assert store.complete(7, commit=True) == []


def test_removed_group_takes_its_pending_offsets_along() -> None:
    store = OffsetStore()
    store.put("g", "t", 0, offset(1))
    store.put_pending(7, "g", "t", 1, offset(5))
    store.put_pending(7, "other", "t", 1, offset(6))
    assert store.remove_group("g") == [("t", 0, offset(1))]
    assert not store.has_any("g")
    assert store.complete(7, commit=True) == ["other"]


def test_deleted_topic_is_forgotten_in_all_groups() -> None:
    store = OffsetStore()
    store.put("g", "gone", 0, offset(1))
    store.put("h", "gone", 3, offset(1))
    store.put("h", "kept", 0, offset(1))
    store.put_pending(7, "g", "gone", 0, offset(5))
    assert sorted(store.remove_topic("gone")) == [("g", 0), ("h", 3)]
    assert not store.has_any("g")
    assert committed(store, "h", "kept") == 1


def test_offset_expires_when_its_retention_is_over() -> None:
    plain = CommittedOffset(1, committed_at_ms=100)
    assert not plain.is_expired(1099, retention_ms=1000, counts_from_ms=100)
    assert plain.is_expired(1100, retention_ms=1000, counts_from_ms=100)
    explicit = CommittedOffset(1, committed_at_ms=100, expires_at_ms=500)
    assert explicit.is_expired(500, retention_ms=1_000_000, counts_from_ms=100)
