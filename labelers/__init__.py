"""Ground floor: arrays or text in, labels out. Nothing here knows files, records or commands."""
