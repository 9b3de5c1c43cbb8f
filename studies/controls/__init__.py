"""What single pages set beside the library: drawn vectors, layers in any order, every pair at once, stored grids."""
