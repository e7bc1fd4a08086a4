"""Steps about what events look like: topics with schemas, and a schema that is refused."""

from contextlib import suppress
from typing import Final

from deploy.clients.connections import registry_client
from deploy.quickstart import screen
from deploy.quickstart.places import Places, example, quoted, shown
from deploy.quickstart.tour import StepFailed, Tour, ensure
from deploy.views.schemas import EXTENSIONS
from schema_registry.client.models import SchemaDefinition

_SCHEMAS: Final = {"orders": "schemas/order.avsc", "payments": "schemas/payment.proto"}
_INCOMPATIBLE: Final = "schemas/order-incompatible.avsc"
_COMPATIBLE: Final = "schemas/order-v2.avsc"
_SUBJECT: Final = "orders-value"
_TIMEOUT_S: Final = 30.0


def register_by_hand(tour: Tour) -> list[str]:
    """The commands of `register`."""
    places = tour.places
    return [
        *(places.caudal(f"topic create {topic} --if-not-exists", "cluster") for topic in _SCHEMAS),
        *(
            places.caudal(f"schema register {topic}-value {quoted(shown(example(file)))}", "registry")
            for topic, file in _SCHEMAS.items()
        ),
    ]


def register(tour: Tour) -> None:
    """Create the topics of orders and payments, and register their schemas."""
    from schema_registry.client.errors import IncompatibleSchema

    _create_topics(tour.places)
    rows = []
    with registry_client(tour.places.registry, timeout=_TIMEOUT_S) as client:
        for topic, file in _SCHEMAS.items():
            definition = _definition(file)
            try:
                registered = client.register(f"{topic}-value", definition)
            except IncompatibleSchema as error:
                raise StepFailed(
                    f"{topic}-value has schemas of another kind already: {error.message}. "
                    "Take a tour on other data: --data FOLDER"
                ) from error
            found = client.lookup(f"{topic}-value", definition)
            ensure(found.id is not None and found.id == registered.id, f"the registry does not find {file} again")
            assert found.id is not None
            tour.schema_ids[topic] = found.id
            rows.append((topic, f"{topic}-value", definition.schema_type.value, found.version, found.id))
    screen.checked("the topics exist, and the registry knows their schemas:")
    screen.rows(["topic", "subject", "format", "version#", "id#"], rows)


def refuse_by_hand(tour: Tour) -> list[str]:
    """The commands of `refuse`."""
    return [
        tour.places.caudal(f"schema register {_SUBJECT} {quoted(shown(example(_INCOMPATIBLE)))}", "registry"),
        tour.places.caudal(f"schema check {_SUBJECT} {quoted(shown(example(_COMPATIBLE)))}", "registry"),
    ]


def refuse(tour: Tour) -> None:
    """Try to register a schema that cannot read what was written before, and ask about one that can."""
    from deploy.views.compatibility import ask, read_judgement
    from schema_registry.client.errors import IncompatibleSchema

    with registry_client(tour.places.registry, timeout=_TIMEOUT_S) as client:
        before = client.versions(_SUBJECT)
        incompatible = _definition(_INCOMPATIBLE)
        if ask(client, _SUBJECT, incompatible).is_compatible:
            raise StepFailed(f"the registry would accept {_INCOMPATIBLE}; check the level of {_SUBJECT}")
        try:
            client.register(_SUBJECT, incompatible)
        except IncompatibleSchema as error:
            judged = read_judgement(error.messages, is_compatible=False)
        else:
            raise StepFailed(f"the registry has accepted {_INCOMPATIBLE}")
        ensure(client.versions(_SUBJECT) == before, f"{_SUBJECT} has other versions than before")
        screen.checked(f"refused, and {_SUBJECT} is unchanged:")
        screen.pairs([(item.type or "reason", item.words) for item in judged.differences])
        compatible = _definition(_COMPATIBLE)
        ensure(ask(client, _SUBJECT, compatible).is_compatible, f"the registry would not accept {_COMPATIBLE} either")
        screen.checked("the same field with a default may follow")


def _create_topics(places: Places) -> None:
    from core_broker.client.admin import Admin
    from core_broker.client.errors import AlreadyExists
    from core_broker.client.settings import ClientSettings

    admin = Admin(ClientSettings(bootstrap_servers=places.bootstrap, properties={"log_level": "0"}))
    for topic in _SCHEMAS:
        with suppress(AlreadyExists):
            admin.create_topic(topic)


def _definition(file: str) -> SchemaDefinition:
    path = example(file)
    return SchemaDefinition(path.read_text(encoding="utf-8"), EXTENSIONS[path.suffix])
