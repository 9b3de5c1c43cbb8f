"""How a checkpoint lies in files: the header of one, byte ranges, dtypes, and which files it consists of."""
