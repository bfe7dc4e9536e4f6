"""HadarE on real hosts."""
