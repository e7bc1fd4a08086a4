"""Types as they are written in statements, as values."""

from streams.model import types
from streams.model.sources import Column
from streams.model.types import SqlType
from streams.sql.analysis.catalog import Catalog
from streams.sql.analysis.mistakes import mistake
from streams.sql.language.tree import types as tree


def resolved_type(written: tree.Type, catalog: Catalog) -> SqlType:
    """The type, with what CREATE TYPE has named in the places of the names."""
    match written:
        case tree.PrimitiveType(name):
            return types.PRIMITIVES[name.value]
        case tree.DecimalType(precision, scale):
            return types.Decimal(precision, scale)
        case tree.ArrayType(element):
            return types.Array(resolved_type(element, catalog))
        case tree.MapType(key, value):
            return types.Map(resolved_type(key, catalog), resolved_type(value, catalog))
        case tree.StructType(fields):
            return types.Struct(
                tuple(types.Field(field.name.name, resolved_type(field.type, catalog)) for field in fields)
            )
        case tree.CustomType(name):
            found = catalog.type(name.name)
            if found is None:
                raise mistake(written, f"Cannot resolve unknown type: {name.name}. Define it with CREATE TYPE first.")
            return found


def column(name: str, kind: SqlType) -> Column:
    """A column as the model holds it."""
    return Column(name, str(kind))
