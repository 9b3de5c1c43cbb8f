"""This package places the norms of a checkpoint: the table of families, and how names are held against it."""
