"""python -m bench.peers: see compare.py."""

from __future__ import annotations

import sys

from bench.peers.compare import main

if __name__ == "__main__":
    sys.exit(main())
