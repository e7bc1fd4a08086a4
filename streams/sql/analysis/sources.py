"""The streams and tables in FROM and JOIN."""

from streams.sql.analysis.catalog import Catalog
from streams.sql.analysis.mistakes import mistake
from streams.sql.analysis.scope import Origin
from streams.sql.language.tree.node import Identifier
from streams.sql.language.tree.queries import Query
from streams.sql.language.words import closest


def origins_of(query: Query, catalog: Catalog) -> list[Origin]:
    """What a query reads, by the names that it has there."""
    found = []
    seen: set[str] = set()
    for one in query.sources:
        source = catalog.source(one.name.name)
        if source is None:
            raise mistake(one.name, unknown_source(one.name, catalog))
        if source.name in seen:
            message = f"Can not join '{source.name}' to '{source.name}': self joins are not yet supported."
            raise mistake(one, message)
        seen.add(source.name)
        found.append(Origin(one.known_as, source))
    return found


def unknown_source(name: Identifier, catalog: Catalog) -> str:
    """That there is no such stream or table, and which one may be meant."""
    kinds = {source.name: source.kind for source in catalog.sources()}
    same = [one for one in kinds if one.upper() == name.name.upper()]
    meant = closest(name.name, kinds)
    similar = same or ([meant] if meant else [])
    hint = "".join(f'\nDid you mean "{one}" ({kinds[one]})?' for one in similar)
    if same:
        hint += " Hint: try wrapping the source name in double quotes to make it case-sensitive."
    return f"{name.name} does not exist.{hint}"
