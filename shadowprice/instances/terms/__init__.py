"""Terms: what instances may say beyond nodes and jobs, a module each; how they are written, and their list."""
