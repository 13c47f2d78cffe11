-- Up to where the feed had come at a moment: so what is old is known without an instant in every row of the feed,
-- which is written with every settle. `trimmed`: what is at or before that position is gone.
CREATE TABLE @feed_marks (
    pos bigint PRIMARY KEY,
    at bigint NOT NULL,
    trimmed boolean NOT NULL DEFAULT false
);
