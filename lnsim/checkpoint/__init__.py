"""Where bytes become vectors: headers, byte ranges, dtypes, roles, and the places that checkpoints are read from."""
