"""A zoo of small language models whose lineage is known, because they are trained here.

``python -m studies.zoo`` trains it, model by model, and keeps the norm vectors of each in ``data/vectors/zoo``. Of
``lnsim`` this package uses the reader alone (``keep.py``): checkpoints are read back as any other checkpoint is. It
needs the extra ``[zoo]``: torch and transformers.
"""
