from __future__ import annotations

import sys

from holdfast.demo.story import main

if __name__ == "__main__":
    sys.exit(main())
