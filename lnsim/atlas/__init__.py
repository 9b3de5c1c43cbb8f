"""Many checkpoints in one folder: their extracts, one sketch each, and the search for relatives among them."""
