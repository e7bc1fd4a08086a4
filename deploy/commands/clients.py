"""Clients for commands: by options and variables, then a profile or the platform of the data folder, then defaults."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from deploy.stack import CONNECT, STREAMS

if TYPE_CHECKING:
    from core_broker.client.settings import ClientSettings
    from deploy.clients.connect import ConnectClient
    from deploy.clients.sql import SqlClient
    from deploy.commands.target import Target
    from schema_registry.client.registry_client import RegistryClient

DEFAULT_CONNECT = f"http://localhost:{CONNECT.port}"
DEFAULT_STREAMS = f"http://localhost:{STREAMS.port}"


def find_target(profile: str | None) -> "Target":
    """Where everything is that no option and no variable names; raises BadParameter."""
    from deploy.clients.profiles import ProfileError
    from deploy.commands.target import choose_target

    try:
        return choose_target(profile, os.environ)
    except ProfileError as error:
        raise typer.BadParameter(str(error), param_hint="--profile") from None


def cluster_settings(
    bootstrap: str | None,
    *,
    profile: str | None,
    properties: list[str] | None,
    client_config: Path | None,
    timeout: float,
) -> "ClientSettings":
    """Settings for a client of the cluster; raises BadParameter and SettingsError."""
    from deploy.clients.connections import client_settings

    target = find_target(profile)
    # The address in a file that was named here wins over a profile's.
    address = bootstrap or (target.bootstrap if target.profile and client_config is None else None)
    file = client_config or target.client_file(bootstrap, own=target.bootstrap)
    return client_settings(address, properties, file, timeout=timeout, usual=target.bootstrap)


def open_registry(
    registry: str | None,
    *,
    profile: str | None,
    user: str | None,
    properties: list[str] | None,
    client_config: Path | None,
    insecure_http: bool,
    timeout: float,
) -> "RegistryClient":
    """A client of the registry; raises BadParameter and SettingsError."""
    from deploy.clients.http_login import PlainHttp
    from deploy.clients.registry import registry_client
    from schema_registry.client.settings import InvalidSettings

    target = find_target(profile)
    try:
        return registry_client(
            registry,
            user,
            properties,
            client_config or target.client_file(registry, own=target.registry),
            timeout=timeout,
            usual=target.registry,
            insists=insecure_http,
        )
    except (InvalidSettings, PlainHttp) as error:
        raise typer.BadParameter(str(error)) from None


def open_worker(
    connect: str | None,
    *,
    profile: str | None,
    properties: list[str] | None,
    client_config: Path | None,
    insecure_http: bool,
    timeout: float,
) -> "ConnectClient":
    """A client of the worker; raises BadParameter and SettingsError."""
    from deploy.clients.connections import connect_client

    target = find_target(profile)
    file = client_config or target.client_file(connect, own=target.connect)
    address = connect or target.connect or DEFAULT_CONNECT
    try:
        return connect_client(address, properties, file, timeout=timeout, insists=insecure_http)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--connect") from None


def open_streams(
    streams: str | None,
    *,
    profile: str | None,
    properties: list[str] | None,
    client_config: Path | None,
    insecure_http: bool,
    timeout: float,
) -> "SqlClient":
    """A client of the service of SQL; raises BadParameter and SettingsError."""
    from deploy.clients.connections import sql_client

    target = find_target(profile)
    file = client_config or target.client_file(streams, own=target.streams)
    address = streams or target.streams or DEFAULT_STREAMS
    try:
        return sql_client(address, properties, file, timeout=timeout, insists=insecure_http)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--server") from None
