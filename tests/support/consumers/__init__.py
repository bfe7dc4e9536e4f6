"""Those who read instances, by area: what each says that it knows, and how it is made to read one."""
