"""What tests share: fakes, clusters, strategies, reference answers and paths."""
