"""Steps about what events look like: topics with schemas, and a schema that is refused."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from deploy.quickstart import telling
from deploy.quickstart.places import Places, example, quoted, shown
from deploy.quickstart.tour import StepFailed, Tour, ensure
from deploy.schema_files import read_definition

if TYPE_CHECKING:
    from schema_registry.client.registry_client import RegistryClient

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
    told = []
    with _registry(tour.places) as client:
        for topic, file in _SCHEMAS.items():
            definition = read_definition(str(example(file)), None, None)
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
            told.append((topic, f"{topic}-value", definition.schema_type.value, found.version, found.id))
    telling.checked("the topics are there, and the registry knows what is in them:")
    telling.rows(["topic", "subject", "format", "version#", "id#"], told)


def refuse_by_hand(tour: Tour) -> list[str]:
    """The commands of `refuse`."""
    return [
        tour.places.caudal(f"schema register {_SUBJECT} {quoted(shown(example(_INCOMPATIBLE)))}", "registry"),
        tour.places.caudal(f"schema check {_SUBJECT} {quoted(shown(example(_COMPATIBLE)))}", "registry"),
    ]


def refuse(tour: Tour) -> None:
    """Try to register a schema that cannot read what was written before, and ask about one that can."""
    from deploy.schema_judgement import ask, judgement
    from schema_registry.client.errors import IncompatibleSchema

    with _registry(tour.places) as client:
        before = client.versions(_SUBJECT)
        incompatible = read_definition(str(example(_INCOMPATIBLE)), None, None)
        if ask(client, _SUBJECT, incompatible).is_compatible:
            raise StepFailed(f"the registry would take {_INCOMPATIBLE}; what is the level of {_SUBJECT}?")
        try:
            client.register(_SUBJECT, incompatible)
        except IncompatibleSchema as error:
            judged = judgement(error.messages, is_compatible=False)
        else:
            raise StepFailed(f"the registry has taken {_INCOMPATIBLE}")
        ensure(client.versions(_SUBJECT) == before, f"{_SUBJECT} has other versions than before")
        telling.checked(f"refused, and {_SUBJECT} is what it was:")
        telling.pairs([(clash.type or "reason", clash.words) for clash in judged.clashes])
        compatible = read_definition(str(example(_COMPATIBLE)), None, None)
        ensure(ask(client, _SUBJECT, compatible).is_compatible, f"the registry would not take {_COMPATIBLE} either")
        telling.checked("the same field with a default may follow")


def _create_topics(places: Places) -> None:
    from core_broker.client.admin import Admin
    from core_broker.client.errors import AlreadyExists
    from core_broker.client.settings import ClientSettings

    admin = Admin(ClientSettings(bootstrap_servers=places.bootstrap, properties={"log_level": "0"}))
    for topic in _SCHEMAS:
        with suppress(AlreadyExists):
            admin.create_topic(topic)


@contextmanager
def _registry(places: Places) -> "Iterator[RegistryClient]":
    from deploy.registry_options import registry_client

    with registry_client(places.registry, None, None, None, _TIMEOUT_S) as client:
        yield client
