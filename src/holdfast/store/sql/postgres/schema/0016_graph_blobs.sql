-- Large values of graphs' threads are blobs: `data` is then the digest of their bytes.
ALTER TABLE @graph_values ADD COLUMN blob_digest bytea;
CREATE INDEX CONCURRENTLY graph_values_of_blob ON @graph_values (blob_digest) WHERE blob_digest IS NOT NULL;
