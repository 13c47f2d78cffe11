"""How fast the core is, as ratios to a floor that is measured in the same run (bench/README.md)."""
