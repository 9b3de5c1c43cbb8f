"""What single pages set beside the library: drawn vectors, layers in any order, every pair, grids, obstacles."""
