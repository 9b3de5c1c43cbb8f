"""This package reads the weight formats of the packages that data/vectors/small_models comes from.

Each module turns the bytes of one file into a :class:`readers.directory.Directory`: which tensors it holds and where
their bytes lie. No module converts a value, runs a model or unpickles anything. The readers stay beside the script
that uses them: ``lnsim`` itself reads safetensors only.
"""
