"""Files on any file system that Spark knows: local ones directly, all others through Hadoop in the session's JVM."""

import os
import shutil
import stat
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

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


class Files:
    """Files and folders by path or URI; a missing one is an error only where it must be read."""

    def __init__(self, session: "SparkSession | None" = None) -> None:
        """Without a session only local files can be reached."""
        self._local = LocalFiles()
        self._hadoop = None if session is None else HadoopFiles(session)
        self._default_is_local = session is None or str(
            _configuration(session).get("fs.defaultFS", "file:///")
        ).startswith("file:")

    def local(self, path: str) -> Path | None:
        """The path on this machine; None if it is on another file system."""
        scheme, colon, _ = path.partition(":")
        has_scheme = bool(colon) and "/" not in scheme
        if (has_scheme and scheme != "file") or (not has_scheme and not self._default_is_local):
            return None
        return local_path(path)

    def exists(self, path: str) -> bool:
        """Whether there is a file or a folder."""
        return self.info(path) is not None

    def info(self, path: str) -> FileInfo | None:
        """Its entry in a listing; None if it does not exist."""
        return self._system(path).info(path)

    def read(self, path: str) -> bytes:
        """The content of a file; FileNotFoundError."""
        return self._system(path).read(path)

    def write_new(self, path: str, data: bytes) -> bool:
        """Create a file atomically; False, with nothing done, if it exists."""
        return self._system(path).write_new(path, data)

    def write(self, path: str, data: bytes) -> None:
        """Write or replace a file atomically: readers see the whole old or the whole new one."""
        self._system(path).write(path, data)

    def move(self, source: str, target: str) -> None:
        """Move a file within its file system, creating folders; does nothing if it was moved before."""
        self._system(source).move(source, target)

    def list(self, path: str) -> list[FileInfo]:
        """The entries of a folder, by name; none if there is no folder."""
        return self._system(path).list(path)

    def walk(self, path: str) -> Iterator[FileInfo]:
        """Every file below a folder."""
        for entry in self.list(path):
            if entry.is_dir:
                yield from self.walk(entry.path)
            else:
                yield entry

    def delete(self, path: str) -> None:
        """Remove a file, or a folder with everything in it."""
        self._system(path).delete(path)

    def _system(self, path: str) -> "LocalFiles | HadoopFiles":
        if self.local(path) is not None:
            return self._local
        if self._hadoop is None:
            raise ValueError(f"{path} can be reached only with a Spark session")
        return self._hadoop


def join_path(folder: str, *names: str) -> str:
    """A path below a folder."""
    return "/".join([folder.rstrip("/"), *names])


def local_path(path: str) -> Path:
    """A local path, with or without the prefix file:; as in Hadoop, percent signs are not escapes."""
    return Path("/" + path.removeprefix("file:").lstrip("/")) if path.startswith("file:") else Path(path)


class LocalFiles:
    """Local files; written data is on the disk when a call returns. The methods are those of `Files`."""

    def info(self, path: str) -> FileInfo | None:
        """Its entry in a listing."""
        try:
            return _local_info(path, local_path(path).stat())
        except (FileNotFoundError, NotADirectoryError):
            return None

    def read(self, path: str) -> bytes:
        """The content of a file."""
        return local_path(path).read_bytes()

    def write_new(self, path: str, data: bytes) -> bool:
        """Create a file."""
        target = local_path(path)
        if target.exists():
            return False
        draft = _write_draft(target, data)
        try:
            # A link fails if the name exists; a rename would replace the file.
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
        _write_draft(target, data).replace(target)
        _sync_folder(target.parent)

    def move(self, source: str, target: str) -> None:
        """Move a file."""
        to = local_path(target)
        to.parent.mkdir(parents=True, exist_ok=True)
        try:
            local_path(source).replace(to)
        except FileNotFoundError:
            if not to.exists():
                raise

    def list(self, path: str) -> list[FileInfo]:
        """The entries of a folder."""
        found = []
        try:
            with os.scandir(local_path(path)) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):  # it was deleted meanwhile
                        found.append(_local_info(join_path(path, entry.name), entry.stat()))
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(found, key=lambda info: info.path)

    def delete(self, path: str) -> None:
        """Remove a file or a folder."""
        target = local_path(path)
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target, ignore_errors=True)
        else:
            target.unlink(missing_ok=True)


class HadoopFiles:
    """Any file system that the session's Hadoop knows by the path's scheme. The methods are those of `Files`."""

    def __init__(self, session: "SparkSession") -> None:
        self._gateway = cast("Any", session.sparkContext._gateway)  # noqa: SLF001 -- there is no public way to the JVM
        self._hadoop = self._gateway.jvm.org.apache.hadoop
        self._io = self._gateway.jvm.org.apache.commons.io.IOUtils
        self._configuration = _configuration(session)

    def info(self, path: str) -> FileInfo | None:
        """Its entry in a listing."""
        name, system = self._open(path)
        return self._info(path, system.getFileStatus(name)) if system.exists(name) else None

    def read(self, path: str) -> bytes:
        """The content of a file."""
        name, system = self._open(path)
        if not system.exists(name):
            raise FileNotFoundError(path)
        stream = system.open(name)
        try:
            return bytes(self._io.toByteArray(stream))
        finally:
            stream.close()

    def write_new(self, path: str, data: bytes) -> bool:
        """Create a file."""
        name, system = self._open(path)
        if system.exists(name):
            return False
        draft = self._write_draft(path, data)
        # Hadoop's rename fails if the name exists.
        if system.rename(draft, name):
            return True
        system.delete(draft, False)
        if system.exists(name):
            return False
        raise OSError(f"{path} could not be written")

    def write(self, path: str, data: bytes) -> None:
        """Write or replace a file."""
        name, system = self._open(path)
        draft = self._write_draft(path, data)
        context = self._hadoop.fs.FileContext.getFileContext(system.getUri(), self._configuration)
        rename = getattr(self._hadoop.fs, "Options$Rename")
        options = self._gateway.new_array(rename, 1)
        options[0] = rename.OVERWRITE
        context.rename(draft, name, options)

    def move(self, source: str, target: str) -> None:
        """Move a file."""
        name, system = self._open(source)
        to, _ = self._open(target)
        if not system.exists(name):
            if not system.exists(to):
                raise FileNotFoundError(source)
            return
        system.mkdirs(to.getParent())
        if not system.rename(name, to):
            raise OSError(f"{source} could not be moved to {target}")

    def list(self, path: str) -> list[FileInfo]:
        """The entries of a folder."""
        name, system = self._open(path)
        if not system.exists(name):
            return []
        found = [self._info(join_path(path, status.getPath().getName()), status) for status in system.listStatus(name)]
        return sorted(found, key=lambda info: info.path)

    def delete(self, path: str) -> None:
        """Remove a file or a folder."""
        name, system = self._open(path)
        system.delete(name, True)

    def _open(self, path: str) -> tuple[Any, Any]:
        name = self._hadoop.fs.Path(path)
        system = name.getFileSystem(self._configuration)
        # Without checksum files: they are not replaced together with a file, so a crash would make it unreadable.
        return name, system.getRawFileSystem() if hasattr(system, "getRawFileSystem") else system

    def _write_draft(self, path: str, data: bytes) -> Any:
        folder, _, last = path.rpartition("/")
        draft, system = self._open(join_path(folder, f".{last}.{uuid.uuid4().hex}"))
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


def _configuration(session: "SparkSession") -> Any:
    inner: Any = session._jsparkSession  # noqa: SLF001 -- Spark has no public way to its JVM
    return inner.sessionState().newHadoopConf()


def _write_draft(target: Path, data: bytes) -> Path:
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


def _local_info(path: str, status: os.stat_result) -> FileInfo:
    is_dir = stat.S_ISDIR(status.st_mode)
    return FileInfo(path, 0 if is_dir else status.st_size, status.st_mtime_ns // 1_000_000, is_dir)
