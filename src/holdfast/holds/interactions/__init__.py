"""Six ready-made questions to people: each with its form, its urgency, its deadline and a typed answer."""
