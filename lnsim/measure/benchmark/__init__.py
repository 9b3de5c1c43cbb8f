"""Measures and tests compete on models of known lineage: all pairs of many models at once."""
