"""``python -m fairpul.cli``."""

import sys

from fairpul.cli import main

sys.exit(main())
