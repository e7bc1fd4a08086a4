"""Files wherever Spark can write: the machine's own directly, all others through Hadoop in the session's JVM."""

import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import msgspec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COPY_BYTES: Final = 1 << 20


class FileInfo(msgspec.Struct, frozen=True):
    """A file or folder as a listing shows it."""

    path: str
    size: int
    modified_ms: int
    is_dir: bool

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self.path.rstrip("/").rsplit("/", 1)[-1]


class FileSystem(Protocol):
    """What both kinds of file systems do; see `Files` for the promises."""

    def info(self, path: str) -> FileInfo | None:
        """What a listing would show of it."""
        ...

    def read(self, path: str) -> bytes:
        """All of a file."""
        ...

    def write_new(self, path: str, data: bytes) -> bool:
        """Write a file unless there is one."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Write or replace a file."""
        ...

    def move(self, source: str, target: str) -> None:
        """Give a file another place."""
        ...

    def list(self, path: str) -> list[FileInfo]:
        """What is directly in a folder."""
        ...

    def delete(self, path: str) -> None:
        """Remove a file or a folder."""
        ...


class Files:
    """Files and folders by path or URI; what is missing is no error unless it must be read."""

    def __init__(self, session: "SparkSession | None" = None) -> None:
        """Without a session only the machine's own files can be reached."""
        self._session = session
        self._local = LocalFiles()
        self._hadoop = None if session is None else HadoopFiles(session)
        self._default_is_local = session is None or _default_is_local(session)

    def local(self, path: str) -> Path | None:
        """The path on this machine; None when it is on another file system."""
        scheme = _scheme(path)
        if scheme == "file" or (not scheme and self._default_is_local):
            return local_path(path)
        return None

    def exists(self, path: str) -> bool:
        """Is there a file or a folder?"""
        return self.info(path) is not None

    def info(self, path: str) -> FileInfo | None:
        """What a listing would show of it; None when there is nothing."""
        return self._of(path).info(path)

    def read(self, path: str) -> bytes:
        """All of a file; FileNotFoundError."""
        return self._of(path).read(path)

    def write_new(self, path: str, data: bytes) -> bool:
        """Write a file that nobody sees half of; False and nothing done when there is one already."""
        return self._of(path).write_new(path, data)

    def write(self, path: str, data: bytes) -> None:
        """Write or replace a file: whoever reads it sees all of the old or all of the new one."""
        self._of(path).write(path, data)

    def move(self, source: str, target: str) -> None:
        """Give a file another place on its file system, with the folders to it; nothing when it was moved before."""
        self._of(source).move(source, target)

    def list(self, path: str) -> list[FileInfo]:
        """What is directly in a folder, by name; nothing when there is no folder."""
        return self._of(path).list(path)

    def walk(self, path: str) -> Iterator[FileInfo]:
        """Every file below a folder."""
        for entry in self.list(path):
            if entry.is_dir:
                yield from self.walk(entry.path)
            else:
                yield entry

    def delete(self, path: str) -> None:
        """Remove a file, or a folder with everything in it."""
        self._of(path).delete(path)

    def _of(self, path: str) -> FileSystem:
        if self.local(path) is not None:
            return self._local
        if self._hadoop is None:
            raise ValueError(f"{path} can be reached with a Spark session only")
        return self._hadoop


def joined(folder: str, *names: str) -> str:
    """A path below a folder."""
    return "/".join([folder.rstrip("/"), *names])


def local_path(path: str) -> Path:
    """A path on this machine, with or without file: in front; as in Hadoop, percent signs stand for themselves."""
    return Path("/" + path.removeprefix("file:").lstrip("/")) if path.startswith("file:") else Path(path)


class LocalFiles:
    """The machine's own files; what was written is on the disk when the call returns."""

    def info(self, path: str) -> FileInfo | None:
        """What a listing would show of it."""
        try:
            status = local_path(path).stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        is_dir = local_path(path).is_dir()
        return FileInfo(path, 0 if is_dir else status.st_size, status.st_mtime_ns // 1_000_000, is_dir)

    def read(self, path: str) -> bytes:
        """All of a file."""
        return local_path(path).read_bytes()

    def write_new(self, path: str, data: bytes) -> bool:
        """Write a file unless there is one."""
        target = local_path(path)
        if target.exists():
            return False
        draft = _drafted(target, data)
        try:
            # A link fails when the name is taken, a rename would replace what is there.
            target.hardlink_to(draft)
        except FileExistsError:
            return False
        finally:
            draft.unlink()
        _sync_folder(target.parent)
        return True

    def write(self, path: str, data: bytes) -> None:
        """Write or replace a file."""
        target = local_path(path)
        _drafted(target, data).replace(target)
        _sync_folder(target.parent)

    def move(self, source: str, target: str) -> None:
        """Give a file another place."""
        to = local_path(target)
        to.parent.mkdir(parents=True, exist_ok=True)
        try:
            local_path(source).replace(to)
        except FileNotFoundError:
            if not to.exists():
                raise

    def list(self, path: str) -> list[FileInfo]:
        """What is directly in a folder."""
        try:
            with os.scandir(local_path(path)) as entries:
                found = [_entry_info(path, entry) for entry in entries]
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted((info for info in found if info is not None), key=lambda info: info.path)

    def delete(self, path: str) -> None:
        """Remove a file or a folder."""
        target = local_path(path)
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target, ignore_errors=True)
        else:
            target.unlink(missing_ok=True)


class HadoopFiles:
    """Whatever file system the session's Hadoop knows by the path's scheme."""

    def __init__(self, session: "SparkSession") -> None:
        self._gateway = cast("Any", session.sparkContext._gateway)  # noqa: SLF001 -- there is no public way to the JVM
        self._hadoop = self._gateway.jvm.org.apache.hadoop
        self._io = self._gateway.jvm.org.apache.commons.io.IOUtils
        self._configuration = _configuration(session)

    def info(self, path: str) -> FileInfo | None:
        """What a listing would show of it."""
        name, system = self._at(path)
        return self._info(path, system.getFileStatus(name)) if system.exists(name) else None

    def read(self, path: str) -> bytes:
        """All of a file."""
        name, system = self._at(path)
        if not system.exists(name):
            raise FileNotFoundError(path)
        stream = system.open(name)
        try:
            return bytes(self._io.toByteArray(stream))
        finally:
            stream.close()

    def write_new(self, path: str, data: bytes) -> bool:
        """Write a file unless there is one."""
        name, system = self._at(path)
        if system.exists(name):
            return False
        draft = self._drafted(path, data)
        # A file system's own rename refuses a name that is taken.
        if system.rename(draft, name):
            return True
        system.delete(draft, False)
        if system.exists(name):
            return False
        raise OSError(f"{path} could not be written")

    def write(self, path: str, data: bytes) -> None:
        """Write or replace a file."""
        name, system = self._at(path)
        draft = self._drafted(path, data)
        context = self._hadoop.fs.FileContext.getFileContext(system.getUri(), self._configuration)
        rename = getattr(self._hadoop.fs, "Options$Rename")
        how = self._gateway.new_array(rename, 1)
        how[0] = rename.OVERWRITE
        context.rename(draft, name, how)

    def move(self, source: str, target: str) -> None:
        """Give a file another place."""
        name, system = self._at(source)
        to, _ = self._at(target)
        if not system.exists(name):
            if not system.exists(to):
                raise FileNotFoundError(source)
            return
        system.mkdirs(to.getParent())
        if not system.rename(name, to):
            raise OSError(f"{source} could not be moved to {target}")

    def list(self, path: str) -> list[FileInfo]:
        """What is directly in a folder."""
        name, system = self._at(path)
        if not system.exists(name):
            return []
        found = [self._info(joined(path, status.getPath().getName()), status) for status in system.listStatus(name)]
        return sorted(found, key=lambda info: info.path)

    def delete(self, path: str) -> None:
        """Remove a file or a folder."""
        name, system = self._at(path)
        system.delete(name, True)

    def _at(self, path: str) -> tuple[Any, Any]:
        name = self._hadoop.fs.Path(path)
        system = name.getFileSystem(self._configuration)
        # Checksum files beside a file are not replaced together with it: a crash would leave a file nobody can read.
        return name, system.getRawFileSystem() if hasattr(system, "getRawFileSystem") else system

    def _drafted(self, path: str, data: bytes) -> Any:
        folder, _, last = path.rpartition("/")
        draft, system = self._at(joined(folder, f".{last}.{uuid.uuid4().hex}"))
        stream = system.create(draft, True)
        try:
            for start in range(0, len(data), _COPY_BYTES):
                stream.write(data[start : start + _COPY_BYTES])
        finally:
            stream.close()
        return draft

    def _info(self, path: str, status: Any) -> FileInfo:
        is_dir = bool(status.isDirectory())
        return FileInfo(path, 0 if is_dir else status.getLen(), status.getModificationTime(), is_dir)


def _scheme(path: str) -> str:
    scheme, colon, _ = path.partition(":")
    return scheme if colon and "/" not in scheme else ""


def _default_is_local(session: "SparkSession") -> bool:
    return str(_configuration(session).get("fs.defaultFS", "file:///")).startswith("file:")


def _configuration(session: "SparkSession") -> Any:
    inner: Any = session._jsparkSession  # noqa: SLF001 -- Spark has no public way to its JVM
    return inner.sessionState().newHadoopConf()


def _drafted(target: Path, data: bytes) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    with draft.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return draft


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _entry_info(folder: str, entry: "os.DirEntry[str]") -> FileInfo | None:
    try:
        status = entry.stat()
    except FileNotFoundError:
        return None
    is_dir = entry.is_dir()
    return FileInfo(
        joined(folder, entry.name), 0 if is_dir else status.st_size, status.st_mtime_ns // 1_000_000, is_dir
    )
