"""The published numbers of the dispute, each judged: against the others, against measured vectors, or not at all.

``rows`` reads what was published, ``cells`` says which vectors a row speaks of, ``printed`` finds what else was printed
of them and ``published`` what follows from it in closed form, ``measured`` takes a quantity from vectors instead,
``evaluate`` puts cells together, ``checks`` and ``counting`` hold a row against all that, ``judging`` gives every row
its verdict, ``findings`` does the arithmetic of the audit's main findings.
"""
