"""The server: HTTP over the services, live streams, sign-in, plain pages."""
