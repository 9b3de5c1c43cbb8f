"""A zoo of small language models whose lineage is known, because they are trained here.

``python -m zoo`` trains it, model by model, and keeps the norm vectors of each in ``data/vectors/zoo``. Nothing in
``lnsim`` imports this package, and of ``lnsim`` it uses the reader alone (``zoo/keep.py``): checkpoints are
read back as any other checkpoint is read. It needs the extra ``[zoo]``: torch and transformers.
"""
