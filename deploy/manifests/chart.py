"""`deploy/helm/caudal`: the chart's values and their schema; its templates are written by hand and loop over them."""

import json
from typing import Any, Final

from deploy.manifests.containers import DATA, HEADING
from deploy.manifests.monitoring import job_of, observed_port
from deploy.manifests.yaml_text import Comment, Value, yaml_text
from deploy.stack import BROKER, SPARK_CONNECT_PORT, STACK, Place, Service, settings_of

_BOOTSTRAP: Final = '{{ include "caudal.bootstrap" . }}'
_REGISTRY_URL: Final = '{{ include "caudal.registryUrl" . }}'

_MEMORY: Final = {"broker": "512Mi", "registry": "256Mi", "rest-proxy": "256Mi", "connect": "3Gi"}
_DISK: Final = {"broker": "20Gi", "registry": "1Gi", "connect": "20Gi"}
"""Of those that keep something on a disk of their own."""


def places() -> dict[str, Place]:
    """Each service under its name in the cluster, which the release decides."""
    return {
        service.name: Place(
            host=f'{{{{ include "caudal.host" (list . "{service.name}") }}}}',
            port=service.port,
            data=DATA,
            metrics_port=service.metrics_port,
        )
        for service in STACK
    }


def values() -> str:
    """The values."""
    return yaml_text(
        {
            Comment(
                "The image of all services, and the one with Java and Spark that Connect needs (deploy/docker)."
            ): None,
            "image": {"repository": "caudal", "tag": "latest", "pullPolicy": "IfNotPresent"},
            "sparkImage": {"repository": "caudal", "tag": "spark", "pullPolicy": "IfNotPresent"},
            "imagePullSecrets": [],
            "nameOverride": "",
            "fullnameOverride": "",
            **_engines(),
            Comment("\nThe services. Their settings have the names that Kafka and Confluent gave them."): None,
            "services": {service.name: _service(service) for service in STACK},
            **_around(),
        },
        heading=f"Values of the chart `caudal`. Settings may hold templates.\n\n{HEADING}",
    )


def schema() -> str:
    """What values may be, as JSON Schema: Helm refuses anything else before it asks the cluster."""
    services = {service.name: _service_schema(service) for service in STACK}
    return (
        json.dumps(
            {
                "$schema": "http://json-schema.org/draft-07/schema#",
                "title": "Values of the chart caudal",
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "image": _IMAGE,
                    "sparkImage": _IMAGE,
                    "imagePullSecrets": {"type": "array", "items": {"type": "object"}},
                    "nameOverride": _TEXT,
                    "fullnameOverride": _TEXT,
                    "global": {"type": "object"},
                    "kafka": _object(bootstrapServers=_TEXT),
                    "schemaRegistry": _object(url=_TEXT),
                    "postgresql": _object(url=_TEXT, existingSecret=_TEXT, secretKey=_TEXT),
                    "redis": _object(url=_TEXT, existingSecret=_TEXT, secretKey=_TEXT),
                    "spark": _object(master=_TEXT, warehouse=_TEXT),
                    "services": {"type": "object", "additionalProperties": False, "properties": services},
                    "connectWorker": _object(
                        replicas=_COUNT, concurrency=_COUNT, resources=_ANY, nodeSelector=_ANY, tolerations=_LIST
                    ),
                    "serviceAccount": _object(create={"type": "boolean"}, name=_TEXT, annotations=_ANY),
                    "podSecurityContext": _ANY,
                    "securityContext": _ANY,
                    "serviceMonitor": _object(enabled={"type": "boolean"}, interval=_TEXT, labels=_ANY),
                    "prometheusRule": _object(enabled={"type": "boolean"}, labels=_ANY),
                    "networkPolicy": _object(enabled={"type": "boolean"}, from_=_LIST),
                    "podDisruptionBudget": _object(enabled={"type": "boolean"}, maxUnavailable={"type": "integer"}),
                },
            },
            indent=2,
        )
        + "\n"
    )


def chart() -> str:
    """The chart's card."""
    return yaml_text(
        {
            "apiVersion": "v2",
            "name": "caudal",
            "description": "An event platform that Kafka's ecosystem cannot tell from the real thing.",
            "type": "application",
            "version": "0.1.0",
            "appVersion": "0.1.0",
            "kubeVersion": ">=1.25.0-0",
            "keywords": ["kafka", "schema-registry", "kafka-connect", "spark", "streaming"],
        },
        heading=HEADING,
    )


def _engines() -> dict[str, Value]:
    return {
        Comment("\nA Kafka of yours, as host:port (several with commas): then our broker is not started."): None,
        "kafka": {"bootstrapServers": ""},
        Comment("\nA schema registry of yours: then ours is not started."): None,
        "schemaRegistry": {"url": ""},
        Comment(
            "\nPostgreSQL for the registry, so that there can be several: postgresql://user:password@host/db.\n"
            "Here, or better in a Secret that is there already, under secretKey."
        ): None,
        "postgresql": {"url": "", "existingSecret": "", "secretKey": "url"},
        Comment(
            "\nRedis for Connect: then tasks run on Celery workers (connectWorker). redis://:password@host:6379/0,\n"
            "here or in a Secret that is there already."
        ): None,
        "redis": {"url": "", "existingSecret": "", "secretKey": "url"},
        Comment(
            "\nA Spark cluster: its master, such as spark://spark-master:7077, and a folder that it can write,\n"
            "such as s3a://lake/warehouse. Not set: Spark runs inside of Connect."
        ): None,
        "spark": {"master": "", "warehouse": ""},
    }


def _service(service: Service) -> dict[str, Value]:
    settings = settings_of(service.name, places(), elsewhere={"broker": _BOOTSTRAP, "registry": _REGISTRY_URL})
    if service is BROKER:
        host = places()["broker"].host
        settings["advertised.listeners"] = f"{service.protocol}://{host}:{service.port}"
    is_connect = "spark.caudal.data.dir" in settings
    if is_connect:
        # A pod is found under its address (see the template); the service's name stands for all of them.
        settings.pop("rest.advertised.host.name")
    memory = _MEMORY[service.name]
    return {
        Comment(f"{service.title}: {service.purpose}. Settings: {service.settings_page}"): None,
        "enabled": True,
        "replicas": 1,
        "port": service.port,
        "healthPort": observed_port(service),
        "job": job_of(service),
        "configFile": service.config_file,
        "environmentPrefix": service.environment_prefix,
        "spark": is_connect,
        **({"sparkConnectPort": SPARK_CONNECT_PORT} if is_connect else {}),
        "settings": settings,
        Comment("More settings, or others than above."): None,
        "extraSettings": {},
        Comment("Environment variables, such as passwords from Secrets; they win over settings."): None,
        "extraEnv": [],
        **_persistence(service),
        "resources": {"requests": {"cpu": "100m", "memory": memory}, "limits": {"memory": memory}},
        "service": {"type": "ClusterIP", "annotations": {}},
        "podAnnotations": {},
        "nodeSelector": {},
        "tolerations": [],
        "affinity": {},
    }


def _persistence(service: Service) -> dict[str, Value]:
    size = _DISK.get(service.name)
    kept: dict[str, Value] = {"enabled": size is not None, "size": size or "1Gi", "storageClass": "", "path": DATA}
    return {"persistence": kept}


def _around() -> dict[str, Value]:
    return {
        Comment("\nCelery workers of Connect, when redis is set."): None,
        "connectWorker": {
            "replicas": 2,
            "concurrency": 4,
            "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"memory": "3Gi"}},
            "nodeSelector": {},
            "tolerations": [],
        },
        "serviceAccount": {"create": True, "name": "", "annotations": {}},
        "podSecurityContext": {
            "runAsNonRoot": True,
            "runAsUser": 10001,
            "runAsGroup": 10001,
            "fsGroup": 10001,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        Comment("\nFor the Prometheus operator."): None,
        "serviceMonitor": {"enabled": False, "interval": "15s", "labels": {}},
        "prometheusRule": {"enabled": False, "labels": {}},
        Comment(
            "\nLet in only the pods of this release, Prometheus and whom `from` names (peers of a NetworkPolicy)."
        ): None,
        "networkPolicy": {"enabled": False, "from": []},
        Comment("\nFor services with more than one pod."): None,
        "podDisruptionBudget": {"enabled": True, "maxUnavailable": 1},
    }


_TEXT: Final = {"type": "string"}
_COUNT: Final = {"type": "integer", "minimum": 0}
_PORT: Final = {"type": "integer", "minimum": 1, "maximum": 65535}
_ANY: Final = {"type": "object"}
_LIST: Final = {"type": "array"}
_SETTINGS: Final = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    named = {name.rstrip("_"): kind for name, kind in properties.items()}
    return {"type": "object", "additionalProperties": False, "properties": named}


_IMAGE: Final = _object(
    repository=_TEXT, tag=_TEXT, pullPolicy={"type": "string", "enum": ["Always", "IfNotPresent", "Never"]}
)


def _service_schema(service: Service) -> dict[str, Any]:
    # One node is the whole cluster for now: two would be two clusters under one name.
    replicas = {"type": "integer", "minimum": 0, "maximum": 1} if service is BROKER else _COUNT
    return _object(
        enabled={"type": "boolean"},
        replicas=replicas,
        port=_PORT,
        healthPort=_PORT,
        job=_TEXT,
        configFile=_TEXT,
        environmentPrefix=_TEXT,
        spark={"type": "boolean"},
        sparkConnectPort=_PORT,
        settings=_SETTINGS,
        extraSettings=_SETTINGS,
        extraEnv=_LIST,
        persistence=_object(enabled={"type": "boolean"}, size=_TEXT, storageClass=_TEXT, path=_TEXT),
        resources=_ANY,
        service=_object(type={"type": "string", "enum": ["ClusterIP", "NodePort", "LoadBalancer"]}, annotations=_ANY),
        podAnnotations=_ANY,
        nodeSelector=_ANY,
        tolerations=_LIST,
        affinity=_ANY,
    )
