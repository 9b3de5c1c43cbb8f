"""This module gives out the replica of a study: synthetic vectors in the shapes of its models.

A replica tests code where there is no network. Its statistics are those that were published, by construction, so it can
say nothing about the real models; ``REPLICA_SENTENCE`` says so in every file of it.
"""

from studies.replica.build import REPLICA_SENTENCE, build_projections, build_replica

__all__ = ["REPLICA_SENTENCE", "build_projections", "build_replica"]
