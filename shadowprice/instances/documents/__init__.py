"""Documents that somebody wrote: trees of plain values, and typed records made of them."""
