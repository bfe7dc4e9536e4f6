"""What the speed of a run depends on: throughputs, profiles, locality, width, sharing."""
