-- Up to where the feed had come at a moment: so what is old is known without an instant in every row of the feed,
-- which is written with every settle. `trimmed`: what is at or before that position is gone.
CREATE TABLE feed_marks (
    pos INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    trimmed INTEGER NOT NULL DEFAULT 0 CHECK (trimmed IN (0, 1))
) STRICT;
