"""The projection matrices of a study's models, which notebook 08 sets beside their norms.

They take megabytes where norms take kilobytes, and one experiment needs them; so what reads and scores them stands
here.
"""
