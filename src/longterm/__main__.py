"""The command ``python -m longterm``, the same as ``longterm``."""

import sys

from longterm.cli import main

sys.exit(main())
