"""Orders, payments and deliveries of a shop, sent with Confluent's own client and serializers.

    python produce.py                  # ten orders, and what belongs to them
    python produce.py --orders 1000 --first 5001

Where the platform is: BOOTSTRAP_SERVERS (localhost:9092) and SCHEMA_REGISTRY_URL (http://localhost:8081).
"""

import argparse
import os
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, message_factory
from grpc_tools import protoc

BOOTSTRAP_SERVERS = os.environ.get("BOOTSTRAP_SERVERS", "localhost:9092")
SCHEMA_REGISTRY_URL = os.environ.get("SCHEMA_REGISTRY_URL", "http://localhost:8081")
SCHEMAS = Path(__file__).parent / "schemas"
CUSTOMERS = {"Ana": "PT", "Bruno": "PT", "Chloé": "FR", "Diego": "ES", "Elena": "ES"}
PRICES_CENTS = {"canoe": 64900, "paddle": 3900, "rope": 1250, "tent": 18900, "lamp": 1990}
# The schemas are registered as they are in the files; a serializer then writes by the latest one of its subject.
BY_LATEST = {"auto.register.schemas": False, "use.latest.version": True}

Serialize = Callable[[Any, SerializationContext], bytes | None]


def main() -> None:
    """Send orders, and for each a payment and a delivery."""
    options = arguments()
    registry = SchemaRegistryClient({"url": SCHEMA_REGISTRY_URL})
    payment = payment_class()
    serialize = serializers(registry, payment)
    failures: list[KafkaError] = []
    producer = Producer({"bootstrap.servers": BOOTSTRAP_SERVERS, "enable.idempotence": True})

    def send(topic: str, order_id: int, value: object) -> None:
        data = serialize[topic](value, SerializationContext(topic, MessageField.VALUE))
        producer.produce(topic, key=str(order_id), value=data, on_delivery=delivered)
        producer.poll(0)

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error)

    for order_id in range(options.first, options.first + options.orders):
        order = an_order(order_id)
        paid = order["quantity"] * order["price_cents"]
        send("orders", order_id, order)
        send("payments", order_id, payment(order_id=order_id, method="card", amount_cents=paid))
        send("deliveries", order_id, {"order_id": order_id, "carrier": "River Express", "status": "sent"})
    producer.flush(30)
    if failures or len(producer):
        raise SystemExit(f"{len(failures) + len(producer)} records were not acknowledged: {failures[:3]}")
    print(f"{options.orders} orders, payments and deliveries sent to {BOOTSTRAP_SERVERS}")


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description="Send orders, payments and deliveries of a shop.")
    parser.add_argument("--orders", type=int, default=10, help="how many orders")
    parser.add_argument("--first", type=int, default=101, help="the number of the first one")
    return parser.parse_args()


def serializers(registry: SchemaRegistryClient, payment: Any) -> dict[str, Serialize]:
    """One for each topic, by its registered schema."""
    for topic, file, kind in (
        ("orders", "order.avsc", "AVRO"),
        ("payments", "payment.proto", "PROTOBUF"),
        ("deliveries", "delivery.json", "JSON"),
    ):
        registry.register_schema(f"{topic}-value", Schema((SCHEMAS / file).read_text(), kind))
    return {
        "orders": AvroSerializer(registry, conf=BY_LATEST),
        "payments": ProtobufSerializer(payment, registry, BY_LATEST),
        "deliveries": JSONSerializer(None, registry, conf=BY_LATEST),
    }


def payment_class() -> Any:
    """The class of payments, made from the .proto file; a program of yours would import what protoc has written."""
    with tempfile.TemporaryDirectory() as folder:
        compiled = Path(folder, "payment.binpb")
        if protoc.main(["protoc", f"-I{SCHEMAS}", f"-o{compiled}", "payment.proto"]):
            raise SystemExit("protoc refused payment.proto")
        files = descriptor_pb2.FileDescriptorSet.FromString(compiled.read_bytes())
    return message_factory.GetMessages(files.file)["shop.Payment"]


def an_order(order_id: int) -> dict[str, Any]:
    """The order with a number: always the same one."""
    drawn = random.Random(order_id)
    customer = drawn.choice(list(CUSTOMERS))
    item = drawn.choice(list(PRICES_CENTS))
    return {
        "id": order_id,
        "customer": customer,
        "item": item,
        "quantity": drawn.randint(1, 3),
        "price_cents": PRICES_CENTS[item],
        "country": CUSTOMERS[customer],
    }


if __name__ == "__main__":
    main()
