"""The process that runs protoc: `python -m schema_registry.formats.protobuf_worker`.

protoc is C++ that reads untrusted input and writes its errors to file descriptor 2, so it gets a process of its own,
which may crash, and whose time and memory are limited. Requests and replies are length-prefixed on stdin and stdout.
The process ends with its parent, when stdin is closed.
"""

import os
import resource
import signal
import struct
from typing import BinaryIO

import msgspec

from schema_registry.formats import protobuf_builtin

LENGTH = struct.Struct(">I")
CPU_SECONDS = 0.7
"""Processor time for one schema; ordinary ones take less than a millisecond."""
MEMORY_BYTES = 1 << 30
MAX_ERROR_BYTES = 1 << 18


class CompileRequest(msgspec.Struct, frozen=True, array_like=True):
    """One .proto text with the files that it may import besides the bundled ones."""

    name: str
    text: bytes
    dependencies: bytes
    """A serialized FileDescriptorSet."""


class CompileReply(msgspec.Struct, frozen=True, array_like=True):
    """The compiled file after its dependencies, or protoc's errors."""

    descriptor_set: bytes
    errors: str


def main() -> None:
    """Serve requests until stdin is closed."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    compiler = _Protoc()
    while (request := _read_request(requests)) is not None:
        # The default action of SIGPROF ends the process; protoc cannot be interrupted in any other way.
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        try:
            reply = msgspec.msgpack.encode(compiler.compile(request))
        except MemoryError:
            # C++ aborts as well when it runs out of memory; the parent then knows that the schema caused it.
            os.abort()
        signal.setitimer(signal.ITIMER_PROF, 0)
        replies.write(LENGTH.pack(len(reply)) + reply)
        replies.flush()


class _Protoc:
    """protoc with all files in memory, so that nothing is left behind however the process ends."""

    def __init__(self) -> None:
        # Not imported at the top, because the parent imports this module for its messages and needs no compiler.
        from grpc_tools import protoc

        self._run = protoc.main
        self._text = os.memfd_create("text")
        self._dependencies = os.memfd_create("dependencies")
        self._output = os.memfd_create("output")
        self._errors = os.memfd_create("errors")
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        os.dup2(self._errors, 2)
        self._builtins = -1

    def compile(self, request: CompileRequest) -> CompileReply:
        known = [self._dependencies] if request.dependencies else []
        if b"import" in request.text:
            known.append(self._compile_bundled())
        _refill(self._text, request.text)
        _refill(self._dependencies, request.dependencies)
        _refill(self._output, b"")
        _refill(self._errors, b"")
        arguments = [
            "protoc",
            f"-I{request.name}={_path(self._text)}",
            *([f"--descriptor_set_in={':'.join(map(_path, known))}"] if known else []),
            "--include_imports",
            "--include_source_info",
            "--retain_options",
            f"--descriptor_set_out={_path(self._output)}",
            _path(self._text),
        ]
        if self._run(arguments) == 0:
            return CompileReply(os.pread(self._output, os.fstat(self._output).st_size, 0), "")
        errors = os.pread(self._errors, MAX_ERROR_BYTES, 0).decode(errors="replace")
        return CompileReply(b"", errors.replace(f"{_path(self._text)}:", ""))

    def _compile_bundled(self) -> int:
        """The bundled files, compiled once: parsing descriptor.proto each time would take longer than all the rest."""
        if self._builtins < 0:
            self._builtins = os.memfd_create("builtins")
            folders = [f"-I{prefix}={folder}" for prefix, folder in protobuf_builtin.folders().items()]
            output = f"--descriptor_set_out={_path(self._builtins)}"
            self._run(["protoc", *folders, output, *sorted(protobuf_builtin.names())])
        return self._builtins


def _path(descriptor: int) -> str:
    return f"/proc/self/fd/{descriptor}"


def _refill(descriptor: int, content: bytes) -> None:
    os.ftruncate(descriptor, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)


def _read_request(stream: BinaryIO) -> CompileRequest | None:
    header = stream.read(LENGTH.size)
    if len(header) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(header)
    return msgspec.msgpack.decode(stream.read(length), type=CompileRequest)


if __name__ == "__main__":
    main()
