"""`deploy/compose/scale-out.yaml`: the same platform on engines that grow, and more of everything."""

from collections.abc import Mapping
from typing import Final

from deploy.manifests.containers import (
    DATA,
    HEADING,
    NETWORK_PORT,
    after,
    checked,
    container,
    here,
    image_of,
    places,
)
from deploy.manifests.environment import variables_of
from deploy.manifests.single_node import broker_listeners
from deploy.manifests.yaml_text import Comment, Value, yaml_text
from deploy.stack import BROKER, BY_NAME, CONNECT, REGISTRY, REST_PROXY, SPARK_CONNECT_PORT, Service, settings_of

KAFKA_NODES: Final = 3
REGISTRIES: Final = 2
PROXIES: Final = 3
CONNECTS: Final = 2
WORKERS: Final = 2
SPARK_WORKERS: Final = 2

BEHIND_GATEWAY: Final = (REGISTRY, REST_PROXY, CONNECT)

SPARK: Final = f"{DATA}/spark"
"""The folder of the one Spark engine; all who name it share that engine, through a socket in it."""
WAREHOUSE: Final = f"{DATA}/warehouse"
"""The tables, where engine and executors can write."""
_SPARK_MASTER_PORT: Final = 7077
_CONTROLLER_PORT: Final = 9093
_CLUSTER: Final = "Y2F1ZGFsLXNjYWxlLW91dA"
_HEADING: Final = f"""The platform on engines that grow: Apache Kafka ({KAFKA_NODES} nodes, KRaft) for topics,
PostgreSQL under {REGISTRIES} registries, Celery workers over Redis for Connect's tasks, a Spark cluster for tables,
{PROXIES} REST proxies behind one address.

  docker compose -f deploy/compose/scale-out.yaml up --build --wait
  docker compose -f deploy/compose/scale-out.yaml up --wait --scale connect-worker=8 --scale spark-worker=4

On several machines the same parts are the chart (deploy/helm/caudal) and whatever runs Kafka, PostgreSQL, Redis and
Spark there; the settings below are then what to look at. Change POSTGRES_PASSWORD.

{HEADING}"""


def scale_out() -> str:
    """The compose file."""
    nodes = [f"kafka-{number}" for number in range(1, KAFKA_NODES + 1)]
    services: dict[str, Value] = {
        **{name: _kafka(number, name) for number, name in enumerate(nodes, start=1)},
        "postgres": _postgres(),
        "redis": _redis(),
        **_spark(),
        REGISTRY.name: _registry(),
        REST_PROXY.name: _rest_proxy(),
        CONNECT.name: _connect(),
        "connect-worker": _connect_worker(),
        "gateway": _gateway(),
    }
    volumes = [
        *(f"{name}-data" for name in nodes),
        "postgres-data",
        "redis-data",
        "spark-master-data",
        "spark-data",
        "warehouse",
    ]
    return yaml_text(
        {"name": "caudal-scale-out", "services": services, "volumes": {name: {} for name in volumes}}, heading=_HEADING
    )


def gateway_configuration() -> str:
    """What lets many containers stand behind the ports of the stack: nginx, which knows nothing of what passes."""
    heading = "".join(f"# {line}\n" for line in HEADING.splitlines())
    return heading + _GATEWAY + "".join(_served(service) for service in BEHIND_GATEWAY)


_GATEWAY: Final = """
proxy_http_version 1.1;
proxy_set_header Host $http_host;
proxy_set_header Connection "";
proxy_buffering off;          # records arrive at live streams when they come, not when a buffer is full
proxy_request_buffering off;
proxy_read_timeout 1d;
client_max_body_size 0;       # services have limits of their own

# A consumer instance lives in one REST proxy: all requests of a consumer group go to the same.
map $uri $instance {
    "~^/consumers/(?<consumer_group>[^/]+)"  $consumer_group;
    default                                  $request_id;
}
"""


def _served(service: Service) -> str:
    return f"""
upstream {service.name} {{
    hash $instance consistent;
    server {service.name}:{service.port};
}}
server {{
    listen {service.port};
    location / {{
        proxy_pass http://{service.name};
    }}
}}
"""


def network_settings(name: str) -> dict[str, str]:
    """The settings of one of our services in front of Apache Kafka."""
    brokers = ",".join(f"kafka-{number}:{NETWORK_PORT}" for number in range(1, KAFKA_NODES + 1))
    settings = settings_of(name, places(), elsewhere={"broker": brokers})
    # Several bear the same name: each is found under that of its machine, which is the default.
    settings.pop("rest.advertised.host.name", None)
    return settings


def _kafka(number: int, name: str) -> dict[str, Value]:
    port = BROKER.port + 100 * (number - 1)
    voters = ",".join(f"{node}@kafka-{node}:{_CONTROLLER_PORT}" for node in range(1, KAFKA_NODES + 1))
    both = broker_listeners(name, outside=f"localhost:{port}")
    settings = {
        "node.id": str(number),
        "process.roles": "broker,controller",
        "controller.quorum.voters": voters,
        **both,
        "listeners": f"{both['listeners']},CONTROLLER://:{_CONTROLLER_PORT}",
        "listener.security.protocol.map": f"{both['listener.security.protocol.map']},CONTROLLER:{BROKER.protocol}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": BROKER.protocol,
        "log.dirs": "/var/lib/kafka/data",
        "default.replication.factor": "3",
        "min.insync.replicas": "2",
        "offsets.topic.replication.factor": "3",
        "transaction.state.log.replication.factor": "3",
        "transaction.state.log.min.isr": "2",
        "group.initial.rebalance.delay.ms": "0",
    }
    test: list[Value] = ["CMD", "/opt/kafka/bin/kafka-broker-api-versions.sh", "--bootstrap-server"]
    return {
        "image": "${KAFKA_IMAGE:-apache/kafka:4.1.0}",
        "environment": {"CLUSTER_ID": _CLUSTER, **variables_of(BROKER.environment_prefix, settings)},
        "ports": [here(port, inside=BROKER.port)],
        "volumes": [f"{name}-data:/var/lib/kafka/data"],
        "healthcheck": checked([*test, f"localhost:{NETWORK_PORT}"], interval="10s", timeout="30s"),
        "restart": "unless-stopped",
        "stop_grace_period": "60s",
    }


def _postgres() -> dict[str, Value]:
    return {
        "image": "${POSTGRES_IMAGE:-postgres:17-alpine}",
        "environment": {
            "POSTGRES_USER": "caudal",
            "POSTGRES_PASSWORD": "${POSTGRES_PASSWORD:-caudal}",
            "POSTGRES_DB": "schemas",
        },
        "volumes": ["postgres-data:/var/lib/postgresql/data"],
        "healthcheck": checked(["CMD", "pg_isready", "-U", "caudal", "-d", "schemas"]),
        "restart": "unless-stopped",
    }


def _redis() -> dict[str, Value]:
    return {
        "image": "${REDIS_IMAGE:-redis:7-alpine}",
        # Who owns which task is in it: written down, and never thrown out for want of memory.
        "command": ["redis-server", "--appendonly", "yes", "--maxmemory-policy", "noeviction"],
        "volumes": ["redis-data:/data"],
        "healthcheck": checked(["CMD", "redis-cli", "ping"]),
        "restart": "unless-stopped",
    }


def _registry() -> dict[str, Value]:
    database = "postgresql://caudal:${POSTGRES_PASSWORD:-caudal}@postgres:5432/schemas"
    settings = network_settings(REGISTRY.name) | {"database.url": database}
    registry = container(REGISTRY.name, settings, volumes={})
    return _without_volumes(registry) | {"depends_on": after("postgres"), "deploy": {"replicas": REGISTRIES}}


def _rest_proxy() -> dict[str, Value]:
    proxy = container(REST_PROXY.name, network_settings(REST_PROXY.name), volumes={})
    needs = after("kafka-1", "kafka-2", REGISTRY.name)
    return _without_volumes(proxy) | {"depends_on": needs, "deploy": {"replicas": PROXIES}}


def connect_settings() -> dict[str, str]:
    """Of Connect and of its workers: they must be the same."""
    return {
        **network_settings(CONNECT.name),
        "executor": "celery",
        "celery.broker.url": "redis://redis:6379/0",
        **spark_settings(),
        "spark.caudal.start": "never",  # the container of the engine is started again by itself
    }


def spark_settings() -> dict[str, str]:
    """Of everybody who shares the engine."""
    return {
        "spark.master": f"spark://spark-master:{_SPARK_MASTER_PORT}",
        "spark.caudal.data.dir": SPARK,
        "spark.caudal.warehouse.dir": WAREHOUSE,
        "spark.caudal.connect.host": "0.0.0.0",
    }


_SPARK_VOLUMES: Final[Mapping[str, str]] = {SPARK: "spark-data", WAREHOUSE: "warehouse"}


def _connect() -> dict[str, Value]:
    connect = container(CONNECT.name, connect_settings(), volumes=_SPARK_VOLUMES)
    needs = after("kafka-1", "kafka-2", REGISTRY.name, "redis")
    return connect | {"depends_on": needs, "deploy": {"replicas": CONNECTS}}


def _connect_worker() -> dict[str, Value]:
    settings = connect_settings()
    return {
        Comment("Carries tasks; as many as there is work. Each takes as many tasks as --concurrency says."): None,
        **image_of(settings),
        "command": ["connect-worker", "--", "--concurrency", "4"],
        "environment": variables_of(BY_NAME["connect"].environment_prefix, settings),
        "volumes": [f"{volume}:{folder}" for folder, volume in _SPARK_VOLUMES.items()],
        "depends_on": after("kafka-1", "kafka-2", REGISTRY.name, "redis"),
        "restart": "unless-stopped",
        "stop_grace_period": "30s",
        "deploy": {"replicas": WORKERS},
    }


def _spark() -> dict[str, Value]:
    master = f"spark://spark-master:{_SPARK_MASTER_PORT}"
    deploying = "org.apache.spark.deploy"
    place: list[Value] = ["--host", "spark-master", "--port", str(_SPARK_MASTER_PORT), "--webui-port", "8080"]
    size: list[Value] = ["--cores", "2", "--memory", "2g", "--work-dir", f"{DATA}/work"]
    return {
        "spark-master": {
            **_of_spark([f"{deploying}.master.Master", *place]),
            Comment("What runs is remembered: a master that comes back would send its executors away."): None,
            "environment": {
                "SPARK_MASTER_OPTS": "-Dspark.deploy.recoveryMode=FILESYSTEM "
                f"-Dspark.deploy.recoveryDirectory={DATA}/recovery"
            },
            "volumes": [f"spark-master-data:{DATA}"],
            "healthcheck": checked(
                [
                    "CMD",
                    "python",
                    "-c",
                    f"import socket; socket.create_connection(('spark-master', {_SPARK_MASTER_PORT}))",
                ]
            ),
        },
        "spark-worker": {
            Comment("Our image, because tasks are Python: the same version and libraries as the engine's."): None,
            **_of_spark([f"{deploying}.worker.Worker", *size, master]),
            "volumes": [f"warehouse:{WAREHOUSE}"],
            "depends_on": after("spark-master"),
            "deploy": {"replicas": SPARK_WORKERS},
        },
        "spark-engine": {
            Comment(
                "The driver: one for all sinks and notebooks. Sinks reach it through the socket in its folder."
            ): None,
            **image_of(spark_settings()),
            "command": ["spark", "engine"],
            "environment": variables_of("CAUDAL_", spark_settings()),
            "ports": [here(SPARK_CONNECT_PORT)],
            "volumes": [f"{volume}:{folder}" for folder, volume in _SPARK_VOLUMES.items()],
            "depends_on": {"spark-worker": {"condition": "service_started"}},
            "healthcheck": checked(["CMD", "caudal", "spark", "status"], interval="10s"),
            "restart": "unless-stopped",
            "stop_grace_period": "30s",
        },
    }


def _of_spark(command: list[Value]) -> dict[str, Value]:
    return {
        **image_of(spark_settings()),
        "entrypoint": ["tini", "--", "spark-class"],
        "command": command,
        "restart": "unless-stopped",
    }


def _gateway() -> dict[str, Value]:
    return {
        "image": "${NGINX_IMAGE:-nginx:1.28-alpine}",
        "ports": [here(service.port) for service in BEHIND_GATEWAY],
        "volumes": ["./gateway.conf:/etc/nginx/conf.d/default.conf:ro"],
        "depends_on": after(*(service.name for service in BEHIND_GATEWAY)),
        "restart": "unless-stopped",
    }


def _without_volumes(service: dict[str, Value]) -> dict[str, Value]:
    return {key: value for key, value in service.items() if key != "volumes"}
