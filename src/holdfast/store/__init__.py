"""Where runs are kept: one set of protocols, several stores behind it."""
