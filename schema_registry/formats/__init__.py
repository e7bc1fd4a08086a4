"""Schema texts as data: parse, check, canonical form, normal form. Pure: no I/O but protoc's."""
