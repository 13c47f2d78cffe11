"""The checks of `holdfast doctor`, one module per subject."""
