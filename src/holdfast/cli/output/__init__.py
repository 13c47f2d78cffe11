"""Tables, timelines, pictures and live views in a terminal."""
