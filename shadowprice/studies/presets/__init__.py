"""Published simulators, quirks included. Adding one is adding a file with a ``PRESET``."""
