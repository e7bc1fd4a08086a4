"""Checks before anything starts: folder, disk, a second launcher, ports."""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from deploy.certificates.authority import AuthorityError
from deploy.launcher.lock import LOCK_NAME, PlatformLock, lock_holder
from deploy.launcher.plan import SPARK, Plan
from deploy.launcher.ports import HeldPort, owner_of
from deploy.launcher.request import Refused
from deploy.security.client_files import write_client_files
from deploy.security.folder import hosts_of
from deploy.security.settings import USERS
from streams.spark.engine.folder import EngineFolder

DISK_FREE_MIN_BYTES: Final = 200 << 20
_CHOOSE_DATA: Final = "choose another folder:  `--data DIR` (or set CAUDAL_DATA)"
_SPARK_BIND: Final = "127.0.0.1"
"""Spark accepts notebooks only from this machine, unless its own settings say otherwise."""
_MIB: Final = 1 << 20


@contextmanager
def ready_to_start(plan: Plan) -> Iterator[Plan]:
    """The plan with all its ports known, while its folder is locked and its ports are held; raises `Refused`."""
    prepare_folders(plan)
    check_disk(plan.data)
    try:
        lock = PlatformLock.try_acquire(plan.data)
    except OSError as error:
        raise _unwritable(plan.data / LOCK_NAME, error) from error
    if lock is None:
        pid = lock_holder(plan.data)
        raise Refused(
            f"a platform runs in {plan.data} already{f' (process {pid})' if pid else ''}",
            [
                f"see its state:  `caudal status --data {plan.data!s}`",
                f"stop it:  `caudal down --data {plan.data!s}`",
                "or start another one:  `--data DIR --ports any`",
            ],
        )
    with ExitStack() as held:
        held.callback(lock.release)
        settled = replace(plan, ports=_hold_ports(plan, held))
        prepare_security(settled)
        yield settled


def prepare_security(plan: Plan) -> None:
    """Make the certificates, passwords and client files of a secured platform that are missing."""
    if (security := plan.security) is None:
        return
    names = [service.name for service in plan.services]
    try:
        security.prepare(certificates=names, users=USERS, hosts=hosts_of(plan.bind))
        write_client_files(security, bootstrap=plan.bootstrap, certificates_bootstrap=plan.certificates_bootstrap)
        for name in names:
            security.write_secrets(name, plan.secrets_of(name))
    except AuthorityError as error:
        raise Refused(f"the certificates of the platform cannot be made: {error}") from error
    except OSError as error:
        raise _unwritable(security.path, error) from error


def prepare_folders(plan: Plan) -> None:
    """Create the folders, and check that they can be written."""
    folders = [plan.data, plan.logs, *(plan.folder_of(service.name) for service in plan.services)]
    for folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(b"x")
        except FileExistsError as error:
            raise Refused(f"{folder} is a file; the platform needs a folder there", [_CHOOSE_DATA]) from error
        except NotADirectoryError as error:
            raise Refused(f"{folder} cannot be created: a part of its path is a file", [_CHOOSE_DATA]) from error
        except OSError as error:
            raise _unwritable(folder, error) from error


def check_disk(data: Path) -> None:
    """Refuse to start if the disk would soon be full."""
    free = shutil.disk_usage(data).free
    if free < DISK_FREE_MIN_BYTES:
        raise Refused(
            f"the disk of {data} has {free // _MIB} MB free; the platform starts with at least "
            f"{DISK_FREE_MIN_BYTES // _MIB} MB",
            ["make room there", _CHOOSE_DATA],
        )


def _unwritable(folder: Path, error: OSError) -> Refused:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Refused(f"the disk of {folder} is full", ["make room there", _CHOOSE_DATA])
    user = os.environ.get("USER") or f"user {os.getuid()}"
    return Refused(
        f"{folder} cannot be written: {error.strerror or error}",
        [f"give {user} the right to write there", _CHOOSE_DATA],
    )


def _hold_ports(plan: Plan, held: ExitStack) -> Mapping[str, int]:
    ports: dict[str, int] = {}
    # Given ports first: any free port could be one of them.
    for name, port in sorted(plan.ports.items(), key=lambda item: not item[1]):
        bind = plan.bind if name != SPARK else _SPARK_BIND
        try:
            reserved = HeldPort.acquire(bind, port)
        except OSError as error:
            if name == SPARK and EngineFolder(plan.spark).is_locked():
                ports[name] = port  # in use by an engine that outlived its platform, and will be used again
                continue
            raise _port_refusal(name, port, bind, error) from error
        held.callback(reserved.release)
        ports[name] = reserved.port
    return {name: ports[name] for name in plan.ports}


def _port_refusal(name: str, port: int, bind: str, error: OSError) -> Refused:
    another = f"choose another:  `--ports {name}=PORT`, or `--ports any`"
    if error.errno == errno.EADDRINUSE:
        owner = owner_of(port)
        return Refused(
            f"port {port} of {name} is in use{f' by {owner}' if owner else ''}",
            [another, "or end that process; a platform ends with  `caudal down`"],
        )
    if error.errno == errno.EACCES:
        return Refused(f"port {port} of {name} needs rights that you do not have: {error.strerror}", [another])
    return Refused(
        f"{name} cannot listen on {bind or 'every address'}:{port}: {error.strerror or error}",
        ["choose an address of this machine:  `--host ADDR`"],
    )
