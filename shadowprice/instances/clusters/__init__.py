"""Parts of clusters: lists of nodes, and quotas of tenants."""
