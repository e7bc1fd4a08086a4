"""The layout of lines and lists in .proto text."""

from collections.abc import Sequence


def join_lines(elements: Sequence[str]) -> str:
    """Each element on its own line, separated by commas."""
    return indent(",\n".join(elements) + "\n") if elements else ""


def option_brackets(options: Sequence[str]) -> str:
    """The options of a field or a value, in brackets; empty if there are none."""
    if not options:
        return ""
    return f" [{options[0]}]" if len(options) == 1 else f" [\n{join_lines(options)}]"


def indent(text: str) -> str:
    """Every line two columns to the right, including empty ones, as Confluent prints them."""
    return "".join(f"  {line}\n" for line in text.removesuffix("\n").split("\n"))


def block(head: str, sections: Sequence[Sequence[str]]) -> str:
    """A declaration with its body; sections are separated by empty lines."""
    filled = [indent("".join(section)) for section in sections if section]
    return f"{head} {{\n" + "\n".join(filled) + "}\n" if filled else f"{head} {{}}\n"
