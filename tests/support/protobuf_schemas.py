"""Generated .proto files that compile."""

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

SCALARS = ("int32", "sint64", "uint64", "fixed32", "sfixed64", "bool", "float", "double", "string", "bytes")
KEYS = ("int32", "string", "bool", "fixed64")
LABELS = ("", "repeated ", "optional ")


@st.composite
def schemas(draw: DrawFn) -> str:
    """A proto3 file of a few messages and enums that mention each other."""
    names = [f"M{index}" for index in range(draw(st.integers(1, 4)))]
    enums = [f"E{index}" for index in range(draw(st.integers(0, 2)))]
    package = draw(st.sampled_from(["", "p", "p.q"]))
    prefix = draw(st.sampled_from(["", "." + (package + "." if package else "")]))
    types = [*SCALARS, *(prefix + name for name in (*names, *enums))]
    parts = ['syntax = "proto3";', f"package {package};" if package else ""]
    parts += [_enum(draw, name) for name in enums]
    parts += [_message(draw, name, types) for name in names]
    return draw(st.sampled_from(["\n", " ", "\n// note\n", "\n\t"])).join(parts)


def _message(draw: DrawFn, name: str, types: list[str]) -> str:
    numbers = draw(st.lists(st.integers(1, 40), max_size=8, unique=True))
    elements = [_field(draw, number, types) for number in numbers]
    if draw(st.booleans()):
        members = draw(st.lists(st.integers(41, 60), min_size=1, max_size=3, unique=True))
        fields = " ".join(f"{draw(st.sampled_from(types))} o{number} = {number};" for number in members)
        elements.append(f"oneof choice {{ {fields} }}")
    if draw(st.booleans()):
        elements.append(f"message Nested {{ {draw(st.sampled_from(types))} x = 1; enum In {{ {name}_IN = 0; }} }}")
        elements.append("Nested nested = 70;")
    if draw(st.booleans()):
        elements.append('reserved 100 to 110, 120; reserved "gone";')
    return f"message {name} {{ {' '.join(draw(st.permutations(elements)))} }}"


def _field(draw: DrawFn, number: int, types: list[str]) -> str:
    name = draw(st.sampled_from([f"f{number}", f"some_field_{number}", f"Upper{number}"]))
    options = draw(st.sampled_from(["", " [deprecated = true]", f' [json_name = "j{number}", deprecated = false]']))
    if draw(st.integers(0, 4)) == 0:
        return f"map<{draw(st.sampled_from(KEYS))}, {draw(st.sampled_from(types))}> {name} = {number}{options};"
    return f"{draw(st.sampled_from(LABELS))}{draw(st.sampled_from(types))} {name} = {number}{options};"


def _enum(draw: DrawFn, name: str) -> str:
    numbers = [0, *draw(st.lists(st.integers(-5, 50).filter(bool), max_size=4, unique=True))]
    values = " ".join(f"{name}_V{str(number).replace('-', 'N')} = {number};" for number in numbers)
    return f"enum {name} {{ {values} }}"
