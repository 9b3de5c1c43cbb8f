"""Checkpoints on the Hub: the only room with network code."""

from lnsim.checkpoint.hub.cache import cached_snapshot
from lnsim.checkpoint.hub.checkpoint import HubCheckpoint, open_hub, open_pinned, pin_hub
from lnsim.checkpoint.hub.client import Settings, close_clients
from lnsim.checkpoint.hub.repo import endpoint, is_commit

__all__ = [
    "HubCheckpoint",
    "Settings",
    "cached_snapshot",
    "close_clients",
    "endpoint",
    "is_commit",
    "open_hub",
    "open_pinned",
    "pin_hub",
]
