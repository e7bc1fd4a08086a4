"""Profiles: named platforms of a user, each with a client file and addresses, in one file that only its owner can read.

A profile holds no secrets itself: it names the client file that has them.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

FOLDER_VARIABLE: Final = "CAUDAL_CONFIG_HOME"
PROFILE_VARIABLE: Final = "CAUDAL_PROFILE"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_BYTES_MAX: Final = 1 << 20
_OTHERS_MAY_WRITE: Final = 0o022


class Profile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Where one platform is, and as whom it is used; None is left to the client file and to defaults."""

    client_config: str | None = None
    """Properties file of a Kafka client: addresses of brokers, TLS, user, password."""
    bootstrap: str | None = None
    registry: str | None = None
    rest_proxy: str | None = None
    connect: str | None = None
    streams: str | None = None
    spark: str | None = None
    """The folder of the Spark engine."""


class Profiles(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All profiles of a user."""

    current: str | None = None
    """The one that counts where no option or variable names another."""
    profiles: dict[str, Profile] = {}

    def named(self, name: str) -> Profile:
        """A profile; raises ProfileError."""
        if name not in self.profiles:
            known = ", ".join(sorted(self.profiles)) or "none"
            raise ProfileError(f"there is no profile {name!r}; there are: {known}")
        return self.profiles[name]


class ProfileError(Exception):
    """There is no such profile, or the profiles cannot be read or written; the message says why."""


def check_name(name: str) -> str:
    """The name if a profile may be called so; raises ProfileError."""
    if not _NAME.fullmatch(name):
        raise ProfileError(f"{name!r} is not a name for a profile: letters, digits, - . _, and at most 64 of them")
    return name


def profiles_file(environment: Mapping[str, str]) -> Path:
    """Where the profiles of this user are kept."""
    if own := environment.get(FOLDER_VARIABLE):
        return Path(own).expanduser() / "profiles.json"
    shared = environment.get("XDG_CONFIG_HOME", "")
    # A relative path is to be ignored (XDG Base Directory Specification).
    folder = Path(shared) if shared.startswith("/") else Path(environment.get("HOME") or Path.home()) / ".config"
    return folder / "caudal" / "profiles.json"


def read_profiles(environment: Mapping[str, str]) -> Profiles:
    """The profiles of this user; raises ProfileError."""
    file = profiles_file(environment)
    try:
        with file.open("rb") as opened:
            found = os.fstat(opened.fileno())
            # Who can change it can have the user's password sent anywhere.
            if found.st_uid not in (os.getuid(), 0) or found.st_mode & _OTHERS_MAY_WRITE:
                raise ProfileError(f"{file} can be changed by other users: `chmod 600 {file}`")
            content = opened.read(_BYTES_MAX)
    except FileNotFoundError:
        return Profiles()
    except OSError as error:
        raise ProfileError(f"{file} cannot be read: {error.strerror}") from error
    try:
        return msgspec.json.decode(content, type=Profiles)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ProfileError(f"{file} is not a file of profiles: {error}") from None


@contextmanager
def changing_profiles(environment: Mapping[str, str]) -> Iterator["Changes"]:
    """Read the profiles, let the block change them, and write them; raises ProfileError."""
    found = read_profiles(environment)
    changes = Changes(current=found.current, profiles=dict(found.profiles))
    yield changes
    file = profiles_file(environment)
    draft = file.with_suffix(f".{os.getpid()}.tmp")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as opened:
            written = Profiles(current=changes.current, profiles=changes.profiles)
            opened.write(msgspec.json.format(msgspec.json.encode(written), indent=2) + b"\n")
        draft.replace(file)
    except OSError as error:
        raise ProfileError(f"{file} cannot be written: {error.strerror}") from error


class Changes(msgspec.Struct, kw_only=True):
    """The profiles while they are changed."""

    current: str | None
    profiles: dict[str, Profile]
