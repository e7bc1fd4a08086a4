"""Where the tools find what no option and no variable names: by a profile, or in the platform of the data folder."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from deploy.clients.profiles import Profile, read_profiles


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A platform as the tools use it; None is left to the client file and to defaults."""

    bootstrap: str | None = None
    client_config: Path | None = None
    registry: str | None = None
    rest_proxy: str | None = None
    connect: str | None = None
    streams: str | None = None
    spark: Path | None = None
    profile: str | None = None
    """The profile that it is from."""
    platform: str | None = None
    """The folder of the platform that it is."""

    def client_file(self, asked: str | None, *, own: str | None) -> Path | None:
        """The client file for an address that an option or variable gives (None: for this target's `own`).

        The one of a running platform is for that platform alone: its password goes to no other address.
        """
        is_other = self.profile is None and asked is not None and asked != own
        return None if is_other else self.client_config


def choose_target(profile: str | None, environment: Mapping[str, str]) -> Target:
    """The profile of this name, else the current one, else the platform that runs; raises ProfileError."""
    found = read_profiles(environment)
    name = profile or found.current
    return _platform(environment) if name is None else target_of(found.named(name), name)


def target_of(profile: Profile, name: str) -> Target:
    """A profile as a target."""
    return Target(
        bootstrap=profile.bootstrap,
        client_config=Path(profile.client_config) if profile.client_config else None,
        registry=profile.registry,
        rest_proxy=profile.rest_proxy,
        connect=profile.connect,
        streams=profile.streams,
        spark=Path(profile.spark) if profile.spark else None,
        profile=name,
    )


def _platform(environment: Mapping[str, str]) -> Target:
    """The platform of the data folder; an empty target if none runs there, or it is not ours to read."""
    from deploy.launcher.request import data_folder
    from deploy.launcher.state import read

    try:
        found = read(data_folder(environment))
    except OSError:
        found = None
    if found is None:
        return Target()
    endpoints = {**found.elsewhere, **{name: service.endpoint for name, service in found.services.items()}}
    return Target(
        bootstrap=found.bootstrap,
        client_config=Path(found.client_config) if found.client_config else None,
        registry=endpoints.get("registry"),
        rest_proxy=endpoints.get("rest-proxy"),
        connect=endpoints.get("connect"),
        streams=endpoints.get("streams"),
        spark=Path(found.spark.data_dir) if found.spark else None,
        platform=found.data,
    )
