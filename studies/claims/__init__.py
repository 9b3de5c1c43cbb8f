"""The published numbers of the dispute, each judged: against the others, against measured vectors, or not at all.

``rows`` reads what was published and of which vectors, ``intervals`` does the arithmetic of printed numbers, ``bounds``
holds what is known of a quantity, ``published`` and ``measured`` are the two places where it is known from,
``evaluate`` and ``counting`` hold a row against that, ``judging`` gives every row its verdict, ``findings`` holds the
numbers of the audit's main findings, ``report`` shows the verdicts. What follows is computed in notebook 10.
"""
