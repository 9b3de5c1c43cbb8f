"""Checkpoints on the Hub: the only room with network code, imported where a source is found to lie there."""
