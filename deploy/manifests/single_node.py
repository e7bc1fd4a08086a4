"""`deploy/compose/compose.yaml`: the whole platform on one machine, each service in a container of its own."""

from typing import Final

from deploy.manifests.containers import DATA, HEADING, NETWORK_PORT, container, here, places
from deploy.manifests.yaml_text import Comment, Value, yaml_text
from deploy.stack import BROKER, SPARK_CONNECT_PORT, STACK, Service, settings_of

_HEADING: Final = f"""The whole platform on one machine, on the defaults that come with it.

  docker compose -f deploy/compose/compose.yaml up --build --wait
  docker compose -f deploy/compose/compose.yaml -f deploy/compose/monitoring.yaml up --build --wait

Ports are open on this machine only. Clients on it find the broker at localhost:{BROKER.port}, containers of the same
network at {BROKER.name}:{NETWORK_PORT}.

{HEADING}"""


def single_node() -> str:
    """The compose file."""
    return yaml_text(
        {
            "name": "caudal",
            "services": {service.name: _service(service) for service in STACK},
            "volumes": {_volume(service): {} for service in STACK},
        },
        heading=_HEADING,
    )


def broker_listeners(host: str, *, outside: str) -> dict[str, str]:
    """Two listeners: one under the name that containers know, one under that which the machine around them knows."""
    return {
        "listeners": f"{BROKER.protocol}://:{NETWORK_PORT},HOST://:{BROKER.port}",
        "advertised.listeners": f"{BROKER.protocol}://{host}:{NETWORK_PORT},HOST://{outside}",
        "listener.security.protocol.map": f"{BROKER.protocol}:{BROKER.protocol},HOST:{BROKER.protocol}",
    }


def _service(service: Service) -> dict[str, Value]:
    settings = settings_of(service.name, places())
    ports = [here(service.port), *([here(service.metrics_port)] if service.metrics_port else [])]
    if service is BROKER:
        settings |= broker_listeners(service.name, outside=f"localhost:{BROKER.port}")
    if "spark.caudal.data.dir" in settings:
        # Everybody in the network may use it; from outside, only this machine.
        settings["spark.caudal.connect.host"] = "0.0.0.0"
        ports.append(here(SPARK_CONNECT_PORT))
    purpose: dict[str, Value] = {
        Comment(f"{service.title}: {service.purpose}. Settings: {service.settings_page}"): None
    }
    return purpose | container(service.name, settings, volumes={DATA: _volume(service)}, ports=tuple(ports))


def _volume(service: Service) -> str:
    return f"{service.name}-data"
