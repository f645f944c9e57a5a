"""``python -m fairpul.cli``."""

import sys

from fairpul_command import main

sys.exit(main())
