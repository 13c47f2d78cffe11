"""Pages for people: made here, no build step, no script needed. GET shows, POST decides."""
