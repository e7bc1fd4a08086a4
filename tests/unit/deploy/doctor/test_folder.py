from pathlib import Path

import pytest

from deploy.doctor.finding import Context, Level
from deploy.doctor.folder import filesystem_of, nearest, room, writable

_MOUNTS = """22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:26 / /dev/shm rw,nosuid - tmpfs tmpfs rw
41 22 0:40 / /mnt/far\\040away rw - nfs4 server:/x rw
42 22 0:41 / /mnt rw - xfs /dev/sdb rw
"""


@pytest.mark.parametrize(
    ("place", "kind"),
    [("/home", "ext4"), ("/dev/shm/caudal", "tmpfs"), ("/mnt/far away/data", "nfs4"), ("/mnt/near", "xfs")],
)
def test_filesystem_is_that_of_the_nearest_mount(place: str, kind: str) -> None:
    assert filesystem_of(Path(place), _MOUNTS) == kind


def test_folder_that_does_not_exist_is_judged_by_its_nearest_parent(tmp_path: Path) -> None:
    assert nearest(tmp_path / "one" / "two") == tmp_path
    (finding,) = writable(Context(environment={}, data=tmp_path / "one" / "two"))
    assert finding.level is not Level.PROBLEM
    assert "at the first start" in finding.found
    assert list(tmp_path.iterdir()) == []


def test_file_in_the_place_of_the_folder_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (finding,) = writable(Context(environment={}, data=tmp_path / "file" / "data"))
    assert finding.level is Level.PROBLEM
    assert any("--data" in step for step in finding.next_steps)


def test_place_where_nothing_can_be_written_is_a_problem() -> None:
    (finding,) = writable(Context(environment={}, data=Path("/proc/caudal")))
    assert finding.level is Level.PROBLEM
    assert "/proc cannot be written" in finding.found


def test_disk_without_room_is_a_problem() -> None:
    (finding,) = room(Context(environment={}, data=Path("/proc/caudal")))
    assert finding.level is Level.PROBLEM
    assert "starts with at least" in finding.found
