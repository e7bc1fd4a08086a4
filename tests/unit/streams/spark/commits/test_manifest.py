from pathlib import Path

import msgspec
import pytest

from core_broker.service.clock import ManualClock
from streams.spark.commits.entries import WrittenRecords
from streams.spark.commits.manifest import Manifest, ManifestStore, Replaced
from streams.spark.files import Files


def store(folder: Path, clock: ManualClock) -> ManifestStore:
    return ManifestStore(Files(), str(folder / "manifest.json"), query="sink orders", clock=clock)


def test_after_a_manifest_was_deleted_its_numbers_are_not_given_again(tmp_path: Path) -> None:
    clock = ManualClock(1_700_000_000_000)
    manifests = store(tmp_path, clock)
    runs = [manifests.begin({}).run for _ in range(3)]
    Files().delete(str(tmp_path / "manifest.json"))
    clock.advance(10_000)
    assert manifests.begin({}).run > max(runs)


def test_a_run_that_was_replaced_decides_nothing_any_more(tmp_path: Path) -> None:
    manifests = store(tmp_path, ManualClock(1_700_000_000_000))
    first = manifests.begin({})
    manifests.begin({})
    with pytest.raises(Replaced, match="Another run of sink orders has begun"):
        manifests.write(first)


def test_records_to_send_keep_the_name_that_they_have_in_stored_manifests() -> None:
    manifest = Manifest(run=1, records=(WrittenRecords(path="a.letters", count=2),))
    stored = msgspec.json.decode(msgspec.json.encode(manifest))
    assert stored["letters"] == [{"type": "letters", "path": "a.letters", "count": 2}]
