"""Studies: policies x loads x clusters x seeds, from one file to tables and figures."""
