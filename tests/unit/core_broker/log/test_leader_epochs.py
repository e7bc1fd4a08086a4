from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core_broker.log.checkpoints import CorruptCheckpoint
from core_broker.log.leader_epochs import FILE_NAME, EpochEnd, EpochStart, LeaderEpochs


@pytest.fixture
def epochs(tmp_path: Path) -> LeaderEpochs:
    epochs = LeaderEpochs(tmp_path / FILE_NAME)
    epochs.assign(0, 0)
    epochs.assign(2, 10)
    epochs.assign(5, 25)
    return epochs


def test_epochs_come_back_from_their_file(epochs: LeaderEpochs, tmp_path: Path) -> None:
    assert (tmp_path / FILE_NAME).read_text() == "0\n3\n0 0\n2 10\n5 25\n"
    assert LeaderEpochs.load(tmp_path).entries == epochs.entries


def test_no_file_means_no_epochs(tmp_path: Path) -> None:
    loaded = LeaderEpochs.load(tmp_path)
    assert (loaded.entries, loaded.latest_epoch) == ((), -1)


@pytest.mark.parametrize(
    "epoch,expected",
    [
        (0, EpochEnd(0, 10)),
        (1, EpochEnd(0, 10)),
        (2, EpochEnd(2, 25)),
        (4, EpochEnd(2, 25)),
        (5, EpochEnd(5, 40)),
        (6, EpochEnd(-1, -1)),
    ],
)
def test_end_of_an_epoch_is_where_the_next_begins(epochs: LeaderEpochs, epoch: int, expected: EpochEnd) -> None:
    assert epochs.end_offset_for(epoch, 40) == expected


def test_kafka_6857_an_undefined_epoch_has_no_end(epochs: LeaderEpochs) -> None:
    assert epochs.end_offset_for(-1, 40) == EpochEnd(-1, -1)


def test_an_epoch_before_all_known_ones_ended_where_they_begin(tmp_path: Path) -> None:
    epochs = LeaderEpochs(tmp_path / FILE_NAME, [EpochStart(3, 7), EpochStart(4, 9)])
    assert epochs.end_offset_for(1, 40) == EpochEnd(1, 7)


@pytest.mark.parametrize("offset,epoch", [(0, 0), (9, 0), (10, 2), (24, 2), (25, 5), (1000, 5)])
def test_epoch_of_an_offset(epochs: LeaderEpochs, offset: int, epoch: int) -> None:
    assert epochs.epoch_for_offset(offset) == epoch


def test_the_same_epoch_again_changes_nothing(epochs: LeaderEpochs) -> None:
    epochs.assign(5, 30)
    assert epochs.entries[-1] == EpochStart(5, 25)


def test_a_new_epoch_at_the_same_offset_replaces_the_one_without_records(epochs: LeaderEpochs) -> None:
    epochs.assign(6, 25)
    assert epochs.entries == (EpochStart(0, 0), EpochStart(2, 10), EpochStart(6, 25))


def test_what_contradicts_an_assignment_goes(epochs: LeaderEpochs) -> None:
    epochs.assign(3, 8)
    assert epochs.entries == (EpochStart(0, 0), EpochStart(3, 8))


def test_kafka_10706_truncation_from_the_end_forgets_later_epochs(epochs: LeaderEpochs, tmp_path: Path) -> None:
    epochs.truncate_from_end(25)
    assert (epochs.latest_epoch, len(epochs.entries)) == (2, 2)
    assert LeaderEpochs.load(tmp_path).entries == epochs.entries


def test_truncation_from_the_start_moves_the_epoch_it_falls_into(epochs: LeaderEpochs, tmp_path: Path) -> None:
    epochs.truncate_from_start(12)
    assert epochs.entries == (EpochStart(2, 12), EpochStart(5, 25))
    assert LeaderEpochs.load(tmp_path).entries == epochs.entries


@pytest.mark.parametrize("line", ["5 3\n5 4", "5 9\n6 3", "x 3", "-1 3", "3", "1 2 3"])
def test_a_file_that_makes_no_sense_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / FILE_NAME).write_text(f"0\n{len(line.splitlines())}\n{line}\n")
    with pytest.raises(CorruptCheckpoint):
        LeaderEpochs.load(tmp_path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 10)), min_size=1, max_size=20),
    end=st.integers(0, 100),
    start=st.integers(0, 100),
)
def test_epoch_of_every_kept_offset_survives_truncation(
    tmp_path: Path, steps: list[tuple[int, int]], end: int, start: int
) -> None:
    epochs = LeaderEpochs(tmp_path / FILE_NAME)
    by_offset: list[int] = []
    epoch = 0
    for bump, count in steps:
        epoch += bump
        epochs.assign(epoch, len(by_offset), save=False)
        by_offset += [epoch] * count
    end, start = min(end, len(by_offset)), min(start, end, len(by_offset))
    epochs.truncate_from_end(end)
    epochs.truncate_from_start(start)
    assert [epochs.epoch_for_offset(offset) for offset in range(start, end)] == by_offset[start:end]
