"""Actions on a hold, one module each. All write with the same compare-and-set (`change`)."""
