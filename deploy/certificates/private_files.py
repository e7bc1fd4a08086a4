"""Files that hold secrets: only their owner may read them, and they are replaced as a whole."""

import os
import stat
from pathlib import Path
from typing import Final

_OTHERS: Final = 0o077


def private_folder(folder: Path) -> Path:
    """Create a folder for its owner alone; from one that is there, others are shut out. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_mode & _OTHERS:
        folder.chmod(0o700)
    return folder


def write_private(file: Path, content: bytes, *, replaces: bool = True) -> None:
    """Write a file that only its owner may read. Raises FileExistsError if it is not to be replaced, and OSError."""
    draft = file.with_name(f".{file.name}.{os.getpid()}.new")
    draft.unlink(missing_ok=True)
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        if replaces:
            draft.replace(file)
        else:
            os.link(draft, file)  # fails if it is there, in one step
    finally:
        draft.unlink(missing_ok=True)


def is_private(path: Path) -> bool:
    """Whether a file or folder belongs to us, and no other user may use it. Raises OSError."""
    found = path.lstat()
    return not stat.S_ISLNK(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & _OTHERS
