"""`python -m rankscope.app.cli` is `rankscope`."""

import sys

from rankscope.app.cli import main

sys.exit(main())
