import random
import struct
import zlib

import pytest

from core_broker.errors import RECORD_ERRORS_MAX, BrokerError, ErrorCode, RecordsRefused
from core_broker.log.producer_state import Origin
from core_broker.log.validation import AppendRules
from core_broker.protocol.compression import Codec
from core_broker.protocol.records import (
    Record,
    build_batch,
    check_crc,
    end_transaction_marker,
    read_records,
    write_crc,
)
from core_broker.service.clock import ManualClock
from core_broker.settings.topic import TopicSettings

NOW = 1_700_000_000_000
COUNT_POSITION, LAST_DELTA_POSITION, ATTRIBUTES_POSITION = 57, 23, 21


def rules(**changes: object) -> AppendRules:
    return AppendRules(TopicSettings(**changes), ManualClock(NOW))  # type: ignore[arg-type]  # settings by name


def batch(count: int = 2, **changes: object) -> bytearray:
    records = [Record(timestamp=NOW - 5, key=b"k%d" % number, value=b"v") for number in range(count)]
    return build_batch(records, **changes)  # type: ignore[arg-type]  # passed on by name


def refusal(buffer: bytearray, origin: Origin = Origin.CLIENT, **changes: object) -> ErrorCode:
    with pytest.raises(BrokerError) as caught:
        rules(**changes).admit(memoryview(buffer), origin)
    return caught.value.code


def refused_records(buffer: bytearray, **changes: object) -> tuple[ErrorCode, dict[int, str]]:
    with pytest.raises(RecordsRefused) as caught:
        rules(**changes).admit(memoryview(buffer), Origin.CLIENT)
    return caught.value.code, dict(caught.value.records)


def patched(buffer: bytearray, layout: str, position: int, value: int) -> bytearray:
    struct.pack_into(layout, buffer, position, value)
    write_crc(buffer)
    return buffer


@pytest.mark.parametrize("codec", list(Codec))
def test_a_sound_batch_is_admitted_as_it_is(codec: Codec) -> None:
    buffer = batch(codec=codec)
    before = bytes(buffer)
    view, headers, append_time_ms = rules().admit(memoryview(buffer), Origin.CLIENT)
    assert bytes(view) == before
    assert [header.record_count for header in headers] == [2]
    assert append_time_ms == -1


def test_several_batches_are_admitted_together() -> None:
    _, headers, _ = rules().admit(memoryview(batch() + batch(3)), Origin.CLIENT)
    assert [header.record_count for header in headers] == [2, 3]


def test_several_batches_of_an_idempotent_producer_are_refused() -> None:
    one = batch(producer_id=1, producer_epoch=0, base_sequence=0)
    assert refusal(one + batch()) is ErrorCode.INVALID_RECORD


def test_no_batch_at_all_is_refused() -> None:
    assert refusal(bytearray()) is ErrorCode.INVALID_RECORD


def test_a_wrong_checksum_is_refused() -> None:
    buffer = batch()
    buffer[-1] ^= 1
    assert refusal(buffer) is ErrorCode.CORRUPT_MESSAGE
    assert refusal(batch() + buffer) is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("size", [1, 16, 17, 60, 61, 70])
def test_a_cut_batch_is_refused(size: int) -> None:
    assert refusal(batch()[:size]) is ErrorCode.CORRUPT_MESSAGE


def test_bytes_after_the_batch_are_refused() -> None:
    assert refusal(batch() + b"rest") is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("magic", [0, 1])
def test_old_message_formats_are_refused(magic: int) -> None:
    buffer = batch()
    buffer[16] = magic
    assert refusal(buffer) is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


@pytest.mark.parametrize("magic", [3, 127, 255])
def test_unknown_message_formats_are_refused(magic: int) -> None:
    buffer = batch()
    buffer[16] = magic
    assert refusal(buffer) is ErrorCode.CORRUPT_MESSAGE


def test_a_batch_beyond_max_message_bytes_is_refused() -> None:
    assert refusal(batch(), max_message_bytes=len(batch()) - 1) is ErrorCode.MESSAGE_TOO_LARGE
    rules(max_message_bytes=len(batch())).admit(memoryview(batch()), Origin.CLIENT)


def test_a_batch_beyond_segment_bytes_is_refused() -> None:
    assert refusal(batch(), segment_bytes=len(batch()) - 1) is ErrorCode.RECORD_LIST_TOO_LARGE


@pytest.mark.parametrize("count,last_delta", [(0, -1), (-1, -2), (0, 0), (2, 0), (1, 1), (2**31 - 1, 1), (5, -1)])
def test_a_count_that_contradicts_the_offsets_is_refused(count: int, last_delta: int) -> None:
    buffer = patched(batch(), ">i", COUNT_POSITION, count)
    assert refusal(patched(buffer, ">i", LAST_DELTA_POSITION, last_delta)) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec_is_refused(codec: int) -> None:
    assert refusal(patched(batch(), ">h", ATTRIBUTES_POSITION, codec)) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_clients_may_not_write_markers_but_coordinators_may() -> None:
    marker = end_transaction_marker(1, 0, commit=True, coordinator_epoch=0, timestamp_ms=NOW)
    assert refusal(marker) is ErrorCode.INVALID_RECORD
    rules(cleanup_policy=frozenset({"compact"})).admit(memoryview(marker), Origin.COORDINATOR)


def test_clients_may_not_say_that_times_are_those_of_the_log() -> None:
    assert refusal(batch(append_time_ms=NOW)) is ErrorCode.INVALID_TIMESTAMP


def test_clients_may_not_choose_offsets() -> None:
    assert refusal(batch(base_offset=5)) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("epoch,sequence", [(0, -1), (-1, 0)])
def test_a_producer_without_sequence_or_epoch_is_refused(epoch: int, sequence: int) -> None:
    buffer = batch(producer_id=1, producer_epoch=epoch, base_sequence=sequence)
    assert refusal(buffer) is ErrorCode.INVALID_RECORD


def test_a_transaction_without_producer_is_refused() -> None:
    assert refusal(batch(is_transactional=True)) is ErrorCode.INVALID_RECORD


def test_timestamps_too_far_ahead_are_refused() -> None:
    late = build_batch([Record(timestamp=NOW + 3_600_001)])
    assert refusal(late) is ErrorCode.INVALID_TIMESTAMP
    rules().admit(memoryview(build_batch([Record(timestamp=NOW + 3_600_000)])), Origin.CLIENT)


def test_what_is_too_far_ahead_moves_with_the_clock() -> None:
    clock = ManualClock(NOW)
    topic_rules = AppendRules(TopicSettings(message_timestamp_after_max_ms=1000), clock)
    late = build_batch([Record(timestamp=NOW + 5000)])
    with pytest.raises(BrokerError):
        topic_rules.admit(memoryview(late), Origin.CLIENT)
    clock.advance(4000)
    topic_rules.admit(memoryview(late), Origin.CLIENT)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_timestamps_too_far_back_are_refused_for_any_record(codec: Codec) -> None:
    records = [Record(timestamp=NOW), Record(timestamp=NOW - 1001)]
    old = build_batch(records, codec=codec)
    assert refusal(old, message_timestamp_before_max_ms=1000) is ErrorCode.INVALID_TIMESTAMP
    rules(message_timestamp_before_max_ms=1001).admit(memoryview(old), Origin.CLIENT)


def test_records_without_timestamp_are_not_too_old() -> None:
    rules(message_timestamp_before_max_ms=1000).admit(memoryview(build_batch([Record(timestamp=-1)])), Origin.CLIENT)


def test_a_negative_timestamp_is_refused() -> None:
    assert refusal(patched(batch(), ">q", 35, -2)) is ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize("codec", list(Codec))
def test_records_of_a_compacted_topic_need_keys(codec: Codec) -> None:
    keyless = build_batch([Record(timestamp=NOW, key=b"k"), Record(timestamp=NOW)], codec=codec)
    assert refusal(keyless, cleanup_policy=frozenset({"compact"})) is ErrorCode.INVALID_RECORD
    rules().admit(memoryview(keyless), Origin.CLIENT)


@pytest.mark.parametrize("codec", list(Codec))
def test_all_records_without_a_key_are_named(codec: Codec) -> None:
    keys = [None, b"k", None, b"", None]
    buffer = build_batch([Record(timestamp=NOW, key=key) for key in keys], codec=codec)
    code, bad = refused_records(buffer, cleanup_policy=frozenset({"compact"}))
    assert code is ErrorCode.INVALID_RECORD
    assert bad == dict.fromkeys((0, 2, 4), "a record of a compacted topic must have a key")


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_all_records_that_are_too_late_or_too_early_are_named(codec: Codec) -> None:
    times = [NOW, NOW + 2001, NOW - 1001, NOW + 2000, NOW - 1000, NOW + 9000, -1]
    buffer = build_batch([Record(timestamp=time) for time in times], codec=codec)
    code, bad = refused_records(buffer, message_timestamp_before_max_ms=1000, message_timestamp_after_max_ms=2000)
    assert code is ErrorCode.INVALID_TIMESTAMP
    assert {index: message.split(",")[0] for index, message in bad.items()} == {
        1: f"timestamp {NOW + 2001} is later than {NOW + 2000}",
        2: f"timestamp {NOW - 1001} is earlier than {NOW - 1000}",
        5: f"timestamp {NOW + 9000} is later than {NOW + 2000}",
    }


def test_records_that_are_too_late_are_named_where_records_need_not_be_opened() -> None:
    buffer = build_batch([Record(timestamp=NOW), Record(timestamp=NOW + 3_600_001)])
    code, bad = refused_records(buffer)
    assert (code, list(bad)) == (ErrorCode.INVALID_TIMESTAMP, [1])


def test_a_bad_timestamp_decides_the_code_when_keys_are_missing_too() -> None:
    records = [Record(timestamp=NOW), Record(timestamp=NOW + 3_600_001, key=b"k"), Record(timestamp=NOW, key=b"k")]
    code, bad = refused_records(build_batch(records), cleanup_policy=frozenset({"compact"}))
    assert (code, list(bad)) == (ErrorCode.INVALID_TIMESTAMP, [0, 1])


def test_a_header_that_alone_claims_a_late_timestamp_refuses_the_batch_as_a_whole() -> None:
    with pytest.raises(BrokerError) as caught:
        rules().admit(memoryview(patched(batch(), ">q", 35, NOW + 3_600_001)), Origin.CLIENT)
    assert caught.value.code is ErrorCode.INVALID_TIMESTAMP
    assert not isinstance(caught.value, RecordsRefused)


def test_the_message_shows_the_first_three_bad_records_and_counts_the_others() -> None:
    buffer = build_batch([Record(timestamp=NOW) for _ in range(5)])
    with pytest.raises(RecordsRefused, match=r"record 0: .*; record 1: .*; record 2: .*key \(and 2 more\); no record"):
        rules(cleanup_policy=frozenset({"compact"})).admit(memoryview(buffer), Origin.CLIENT)


def test_no_more_bad_records_are_named_than_an_answer_may_hold() -> None:
    buffer = build_batch([Record(timestamp=NOW) for _ in range(RECORD_ERRORS_MAX + 5)], codec=Codec.ZSTD)
    _, bad = refused_records(buffer, cleanup_policy=frozenset({"compact"}))
    assert list(bad) == list(range(RECORD_ERRORS_MAX))


def test_garbage_inside_is_refused_only_where_records_are_opened() -> None:
    buffer = patched(batch(codec=Codec.GZIP), ">i", len(batch(codec=Codec.GZIP)) - 8, 12345)
    rules().admit(memoryview(bytearray(buffer)), Origin.CLIENT)
    assert refusal(buffer, cleanup_policy=frozenset({"compact"})) is ErrorCode.INVALID_RECORD
    assert refusal(buffer, compression_type="zstd") is ErrorCode.INVALID_RECORD


def test_more_records_than_can_be_opened_are_refused_only_where_they_would_be() -> None:
    tiny = b"\x0c\x00\x00%b\x01\x01\x00"
    many = 500_001
    buffer = build_batch([Record(timestamp=NOW)])
    buffer = buffer[:61] + zlib.compress(tiny % b"\x00" * many, wbits=31)
    struct.pack_into(">i", buffer, 8, len(buffer) - 12)
    for layout, position, value in ((">h", 21, 1), (">i", 23, many - 1), (">i", 57, many)):
        patched(buffer, layout, position, value)
    rules().admit(memoryview(bytearray(buffer)), Origin.CLIENT)
    assert refusal(buffer, cleanup_policy=frozenset({"compact"})) is ErrorCode.INVALID_RECORD


def test_log_append_time_is_stamped_with_a_right_checksum() -> None:
    records = [Record(timestamp=NOW + 10**9), Record(timestamp=1)]
    stamping = rules(message_timestamp_type="LogAppendTime")
    view, headers, append_time_ms = stamping.admit(memoryview(build_batch(records)), Origin.CLIENT)
    [header] = headers
    assert append_time_ms == header.max_timestamp == NOW
    stamped = AppendRules(TopicSettings(), ManualClock(NOW)).admit(view, Origin.COORDINATOR)[1][0]
    assert stamped.uses_log_append_time
    assert check_crc(view, stamped)
    assert [record.timestamp for record in read_records(view, stamped)] == [NOW, NOW]


@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("codec", list(Codec))
def test_batches_are_brought_to_the_compression_of_the_topic(codec: Codec, target: str) -> None:
    buffer = batch(5, codec=codec)
    view, headers, _ = rules(compression_type=target).admit(memoryview(buffer), Origin.CLIENT)
    [header] = headers
    assert header.codec is (Codec.NONE if target == "uncompressed" else Codec[target.upper()])
    assert check_crc(view, header)
    assert [record.key for record in read_records(view, header)] == [b"k0", b"k1", b"k2", b"k3", b"k4"]


@pytest.mark.parametrize("codec,fast,slow", [("gzip", 1, 9), ("lz4", 9, 12), ("zstd", -50, 19)])
def test_batches_are_compressed_with_the_level_of_the_topic(codec: str, fast: int, slow: int) -> None:
    words = random.Random(7).choices(["order", "customer", "paid", "7", "42", "cancelled"], k=20_000)
    buffer = build_batch([Record(timestamp=NOW, value=" ".join(words).encode())])

    def compressed_size(level: int) -> int:
        topic = rules(compression_type=codec, **{f"compression_{codec}_level": level})
        view, [header], _ = topic.admit(memoryview(bytearray(buffer)), Origin.CLIENT)
        assert [record.value for record in read_records(view, header)] == [" ".join(words).encode()]
        return header.size

    assert compressed_size(slow) < compressed_size(fast)


@pytest.mark.parametrize("codec,levels", [("gzip", (-1, 9)), ("lz4", (1, 17)), ("zstd", (-131_072, 22))])
def test_every_level_that_a_topic_may_have_can_be_compressed_with(codec: str, levels: tuple[int, int]) -> None:
    for level in levels:
        topic = rules(compression_type=codec, **{f"compression_{codec}_level": level})
        view, [header], _ = topic.admit(memoryview(batch(5)), Origin.CLIENT)
        assert len(list(read_records(view, header))) == 5


def test_a_batch_that_grows_too_large_by_decompression_is_refused() -> None:
    buffer = build_batch([Record(timestamp=NOW, value=bytes(5000))], codec=Codec.ZSTD)
    assert refusal(buffer, compression_type="uncompressed", max_message_bytes=1000) is ErrorCode.MESSAGE_TOO_LARGE
