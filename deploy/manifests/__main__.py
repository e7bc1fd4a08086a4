"""Writes the deployment files from the stack: `python -m deploy.manifests [--check]`."""

import sys

from deploy.manifests.files import documents


def main(arguments: list[str]) -> int:
    """Write the files, or with --check fail when one differs from what would be written."""
    outdated = {
        path: text for path, text in documents().items() if not path.exists() or path.read_text("utf-8") != text
    }
    if "--check" in arguments and outdated:
        sys.stderr.write(f"{', '.join(str(path) for path in outdated)}: out of date, run `make docs`\n")
        return 1
    for path, text in outdated.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
