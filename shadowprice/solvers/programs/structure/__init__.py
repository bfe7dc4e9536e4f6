"""Methods that use the structure of linear programmes: they propose, the gate examines."""
