"""The command ``framejit``, and ``python -m framejit``. Next: cli."""

import sys

from framejit.torchcompat.releases import OtherBuild


def main() -> int:
    """The exit status: 1 where framejit was built for others, as a warning has said."""
    try:
        from framejit.cli import main as command  # the parts of framejit that need this torch
    except OtherBuild:
        return 1
    return command()


if __name__ == "__main__":
    sys.exit(main())
