"""Who is asking: tokens, sessions, OpenID Connect; and what they may."""
