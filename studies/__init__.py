"""What only one study needs: the judging of published numbers, the replica's generator, the zoo.

The library lnsim imports nothing from here; notebooks and ``run_all.py`` do.
"""
