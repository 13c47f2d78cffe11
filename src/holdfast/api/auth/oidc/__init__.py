"""OpenID Connect: people sign in at the provider of their house (the extra `oidc`)."""
