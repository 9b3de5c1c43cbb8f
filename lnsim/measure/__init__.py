"""Pure mathematics: NumPy arrays in, NumPy arrays or data frames out."""
