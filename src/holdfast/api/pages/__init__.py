"""Pages for people: rendered on the server, without a build step; they work without scripts."""
