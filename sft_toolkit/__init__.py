"""Prepare SFT data: from raw conversations to exactly masked, packed Arrow shards."""

__version__ = "0.1.0"
