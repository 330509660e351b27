"""``python3 -m course``: see course/cli.py."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 (an older Python gets this sentence, not a SyntaxError)
    sys.exit(
        f"toytorch needs Python 3.11 or newer, and this is {sys.version.split()[0]}.\n"
        "Install a newer one (python.org, your package manager, or `uv python install 3.12`)\n"
        "and run it in the same way, for example: python3.12 -m course"
    )

from course.cli import main

if __name__ == "__main__":
    sys.exit(main())
