"""Terms as they are written, in options, study files and run directories: a file a term, and their list."""
