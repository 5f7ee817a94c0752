"""``python -m dovetail``."""

import sys

from dovetail.cli import main

sys.exit(main())
