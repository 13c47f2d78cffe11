"""Authentication and rights: tokens, sessions, OpenID Connect."""
