"""Records of what a scheduler did: who ran where and when, as logs, tables and rounds tell it."""
