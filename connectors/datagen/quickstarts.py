"""The schemas that come with the connector, in files beside this module."""

from pathlib import Path
from typing import Any, Final

import msgspec

from connect.api.errors import ConfigError

_FOLDER: Final = Path(__file__).with_name("schemas")

KEYS: Final = {
    "clickstream": "ip",
    "clickstream_codes": "code",
    "clickstream_users": "user_id",
    "credit_cards": "card_id",
    "device_information": "device_ip",
    "fleet_mgmt_location": "vehicle_id",
    "fleet_mgmt_sensors": "vehicle_id",
    "gaming_player_activity": "player_id",
    "inventory": "id",
    "orders": "orderid",
    "pageviews": "viewtime",
    "pizza_orders": "store_id",
    "product": "id",
    "purchases": "id",
    "ratings": "rating_id",
    "stock_trades": "symbol",
    "stores": "store_id",
    "transactions": "transaction_id",
    "users": "userid",
    "users_array_map": "userid",
}
"""The key field of each schema."""

_ALIASES: Final = {"users_": "users_array_map", "purchase": "purchases"}


def quickstart_key(name: str) -> str:
    """The key field of a quickstart; empty when there is no such quickstart."""
    return KEYS.get(_full_name(name), "")


def quickstart_schema(name: str) -> dict[str, Any]:
    """The schema of a quickstart; ConfigError when there is no such quickstart."""
    known = _full_name(name)
    if known not in KEYS:
        raise ConfigError(
            f"Invalid value {name} for configuration quickstart: must be one of {', '.join(sorted(KEYS))}"
        )
    schema: dict[str, Any] = msgspec.json.decode((_FOLDER / f"{known}.avsc").read_bytes())
    return schema


def _full_name(name: str) -> str:
    return _ALIASES.get(name.lower(), name.lower())
