"""A-SRPT: jobs in the order of a virtual machine under SRPT, with predicted iterations."""
