-- Large values of graphs' threads are blobs: `data` is then the digest of their bytes.
ALTER TABLE graph_values ADD COLUMN IF NOT EXISTS blob_digest varbinary(255), ADD KEY IF NOT EXISTS graph_values_of_blob (blob_digest);
