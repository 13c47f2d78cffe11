"""`holds`: what can be done with holds on the command line, one module a theme."""
