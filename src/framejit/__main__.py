"""``python -m framejit``: the same as the command ``framejit``. Next: cli."""

import sys

from framejit.cli import main

sys.exit(main())
