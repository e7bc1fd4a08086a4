"""Files that executors write and read without a JVM, on any file system that Arrow knows."""

from typing import Any

import pyarrow.fs


def open_output(path: str) -> Any:
    """A new file; its folder is created."""
    system, name = _locate(path)
    system.create_dir(name.rpartition("/")[0], recursive=True)
    return system.open_output_stream(name)


def open_input(path: str) -> Any:
    """A file to read."""
    system, name = _locate(path)
    return system.open_input_file(name)


def _locate(path: str) -> tuple[pyarrow.fs.FileSystem, str]:
    scheme, separator, rest = path.partition("://")
    if not separator:
        return pyarrow.fs.LocalFileSystem(), path
    # Hadoop has other names for S3 than Arrow.
    system, name = pyarrow.fs.FileSystem.from_uri(f"{'s3' if scheme in ('s3a', 's3n') else scheme}://{rest}")
    return system, name
