"""Applications that train at any width and batch: measured step times and noise of gradients, and progress by them."""
