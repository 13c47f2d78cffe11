"""OpenID Connect: people sign in at their organisation's provider (the extra `oidc`)."""
