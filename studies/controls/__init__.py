"""Null distributions that single pages set beside those of the library: drawn vectors, and layers in any order."""
