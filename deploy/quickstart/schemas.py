"""Steps about schemas: topics with schemas, and a schema that is refused."""

from contextlib import suppress
from typing import Final

from deploy.quickstart import screen
from deploy.quickstart.addresses import EXAMPLES, path_word
from deploy.quickstart.tour import StepFailed, Tour, ensure
from deploy.views.schemas import EXTENSIONS
from schema_registry.client.models import SchemaDefinition

_SCHEMAS: Final = {"orders": "schemas/order.avsc", "payments": "schemas/payment.proto"}
_INCOMPATIBLE: Final = "schemas/order-incompatible.avsc"
_COMPATIBLE: Final = "schemas/order-v2.avsc"
_SUBJECT: Final = "orders-value"


def register_by_hand(tour: Tour) -> list[str]:
    """The commands of `register`."""
    addresses = tour.addresses
    return [
        *(addresses.caudal(f"topic create {topic} --if-not-exists", "cluster") for topic in _SCHEMAS),
        *(
            addresses.caudal(f"schema register {topic}-value {path_word(EXAMPLES / file)}", "registry")
            for topic, file in _SCHEMAS.items()
        ),
    ]


def register(tour: Tour) -> None:
    """Create the topics of orders and payments, and register their schemas."""
    from core_broker.client.admin import Admin
    from core_broker.client.errors import AlreadyExists
    from schema_registry.client.errors import IncompatibleSchema

    admin = Admin(tour.addresses.cluster())
    for topic in _SCHEMAS:
        with suppress(AlreadyExists):
            admin.create_topic(topic)
    rows = []
    with tour.addresses.registry_client() as client:
        for topic, file in _SCHEMAS.items():
            definition = _definition(file)
            try:
                registered = client.register(f"{topic}-value", definition)
            except IncompatibleSchema as error:
                raise StepFailed(
                    f"{topic}-value already has other schemas: {error.message}. Use another folder: --data DIR"
                ) from error
            found = client.lookup(f"{topic}-value", definition)
            ensure(found.id is not None and found.id == registered.id, f"the registry does not find {file} again")
            assert found.id is not None
            tour.schema_ids[topic] = found.id
            rows.append((topic, f"{topic}-value", definition.schema_type.value, found.version, found.id))
    screen.success("the topics exist, and the registry knows their schemas:")
    screen.rows(["topic", "subject", "format", "version#", "id#"], rows)


def refuse_by_hand(tour: Tour) -> list[str]:
    """The commands of `refuse`."""
    return [
        tour.addresses.caudal(f"schema register {_SUBJECT} {path_word(EXAMPLES / _INCOMPATIBLE)}", "registry"),
        tour.addresses.caudal(f"schema check {_SUBJECT} {path_word(EXAMPLES / _COMPATIBLE)}", "registry"),
    ]


def refuse(tour: Tour) -> None:
    """Try to register a schema that cannot read what was written before, and ask about one that can."""
    from deploy.views.compatibility import check_compatibility, read_judgement
    from schema_registry.client.errors import IncompatibleSchema

    with tour.addresses.registry_client() as client:
        before = client.versions(_SUBJECT)
        incompatible = _definition(_INCOMPATIBLE)
        if check_compatibility(client, _SUBJECT, incompatible).is_compatible:
            raise StepFailed(f"the registry would accept {_INCOMPATIBLE}; check the level of {_SUBJECT}")
        try:
            client.register(_SUBJECT, incompatible)
        except IncompatibleSchema as error:
            judged = read_judgement(error.messages, is_compatible=False)
        else:
            raise StepFailed(f"the registry has accepted {_INCOMPATIBLE}")
        ensure(client.versions(_SUBJECT) == before, f"{_SUBJECT} has other versions than before")
        screen.success(f"refused, and {_SUBJECT} is unchanged:")
        screen.pairs([(item.type or "reason", item.words) for item in judged.differences])
        compatible = _definition(_COMPATIBLE)
        ensure(
            check_compatibility(client, _SUBJECT, compatible).is_compatible,
            f"the registry would not accept {_COMPATIBLE} either",
        )
        screen.success("the same field with a default may follow")


def _definition(file: str) -> SchemaDefinition:
    path = EXAMPLES / file
    return SchemaDefinition(path.read_text(encoding="utf-8"), EXTENSIONS[path.suffix])
