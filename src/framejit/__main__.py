"""The command ``framejit``, and ``python -m framejit``. Next: cli."""

import sys

from framejit.torchcompat.releases import OtherTorch


def main() -> int:
    """The exit status: 1 where framejit cannot work with this torch, as a warning has said."""
    try:
        from framejit.cli import main as command  # the parts of framejit that need this torch
    except OtherTorch:
        return 1
    return command()


if __name__ == "__main__":
    sys.exit(main())
