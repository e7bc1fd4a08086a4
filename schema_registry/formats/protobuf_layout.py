"""Lines and lists of .proto text."""

from collections.abc import Sequence


def listed(elements: Sequence[str]) -> str:
    """Elements on lines of their own, with commas between them."""
    return indented(",\n".join(elements) + "\n") if elements else ""


def bracketed(options: Sequence[str]) -> str:
    """Options in brackets as they follow a field or a value; nothing if there are none."""
    if not options:
        return ""
    return f" [{options[0]}]" if len(options) == 1 else f" [\n{listed(options)}]"


def indented(text: str) -> str:
    """Every line two columns to the right, empty ones too, as Confluent prints them."""
    return "".join(f"  {line}\n" for line in text.removesuffix("\n").split("\n"))


def block(head: str, sections: Sequence[Sequence[str]]) -> str:
    """A declaration with its body, whose sections are set apart by empty lines."""
    filled = [indented("".join(section)) for section in sections if section]
    return f"{head} {{\n" + "\n".join(filled) + "}\n" if filled else f"{head} {{}}\n"
