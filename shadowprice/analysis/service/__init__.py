"""Face of a service: HTTP on a Unix socket or loopback, its page, metrics and webhook."""
