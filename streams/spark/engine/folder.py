"""The engine's folder: where its socket, lock, logs and metastore are, and who holds the lock."""

import fcntl
import hashlib
import os
import secrets
import stat
import tempfile
from pathlib import Path
from typing import IO, Final, Self

_SOCKET_PATH_BYTES_MAX: Final = 103
"""The longest path that a socket may have on every system (107 on Linux)."""
_OTHERS_MAY_WRITE: Final = 0o022


class EngineFolder:
    """Names of the files in the folder of an engine."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = path / "engine.lock"
        self.log = path / "engine.log"
        self.spark_log = path / "spark.log"
        self.output = path / "output.log"
        self.metastore = path / "metastore_db"
        self.state = path / "queries"
        self.token = path / "connect.token"
        self._socket_note = path / "engine.socket-path"

    def create(self) -> Self:
        """Create the folder, accessible to its owner only; of one that is there, others lose the right to write."""
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = self.path.stat()
        if found.st_uid == os.getuid() and found.st_mode & _OTHERS_MAY_WRITE:
            # They could replace the socket, and be sent the passwords of connectors.
            self.path.chmod(found.st_mode & 0o7777 & ~_OTHERS_MAY_WRITE)
        return self

    def keep_token(self, given: str | None) -> str:
        """The token that notebooks have to show: the given one, or one that is made once; only the owner can read it.

        Called only by the holder of the lock.
        """
        token = given or self._own_token() or secrets.token_urlsafe(32)
        draft = self.token.with_suffix(".tmp")
        draft.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(f"{token}\n")
        draft.replace(self.token)
        return token

    def _own_token(self) -> str:
        """The token in the file; empty if there is none, or others could have read it."""
        try:
            found = self.token.lstat()
            is_private = stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
            return self.token.read_text(encoding="utf-8").strip() if is_private else ""
        except FileNotFoundError:
            return ""

    @property
    def socket(self) -> Path:
        """The engine's socket: in the folder, or where a note in the folder says if that path would be too long."""
        near = self.path / "engine.sock"
        if len(os.fsencode(near)) <= _SOCKET_PATH_BYTES_MAX:
            return near
        try:
            return Path(self._socket_note.read_text(encoding="utf-8").strip())
        except FileNotFoundError:
            return near

    def choose_socket(self) -> Path:
        """Decide where the socket is and leave the note; called only by the holder of the lock."""
        near = self.path / "engine.sock"
        if len(os.fsencode(near)) <= _SOCKET_PATH_BYTES_MAX:
            return near
        chosen = _short_folder() / f"{hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]}.sock"
        self._socket_note.write_text(str(chosen), encoding="utf-8")
        return chosen

    def is_locked(self) -> bool:
        """True while an engine starts, runs or ends here."""
        lock = FolderLock.try_acquire(self)
        if lock is None:
            return True
        lock.release()
        return False


class FolderLock:
    """The right to be the engine of a folder; the system releases it when its holder dies."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    @classmethod
    def try_acquire(cls, folder: EngineFolder) -> Self | None:
        """The lock, or None if another process holds it."""
        file = folder.lock.open("a+", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return None
        return cls(file)

    def sign(self, pid: int) -> None:
        """Write the holder's process id into the file."""
        self._file.truncate(0)
        self._file.write(f"{pid}\n")
        self._file.flush()

    def fileno(self) -> int:
        """The file that is locked; a process that inherits it holds the lock as well."""
        return self._file.fileno()

    def release(self) -> None:
        """Release the lock."""
        self._file.close()


def _short_folder() -> Path:
    """A folder with a short path that belongs to this user alone."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    is_usable = runtime and len(os.fsencode(runtime)) < 60 and os.access(runtime, os.W_OK)
    folder = Path(runtime) / "caudal" if is_usable else Path(tempfile.gettempdir()) / f"caudal-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(f"{folder} must be owned by you, with mode 0700")
    return folder
