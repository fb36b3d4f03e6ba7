"""python -m longterm: the same as the command `longterm`."""

import sys

from longterm.cli import main

sys.exit(main())
