"""The node's side of a lease. Standard library, Python 3.9 and Linux; copied to where it runs.

``exit.json`` is written when no process of the command is left. That is exact: the supervisor is a
child subreaper, so every orphan of the command, in whatever session, becomes its child, and
``waitpid`` says that there is none only when there is none.

A supervisor forks a child that takes the lock of the lease for both, reads the order, checks the node
and becomes the command. It waits itself, and shares nearly all of its memory with the launcher.

To stop, SIGTERM goes to the command alone, since a data loader that dies would make a crash of its
training; after half the grace to all of its processes, for wrappers that pass no signal on; after
the grace SIGKILL to all. A supervisor started where an earlier one died kills what that one left.
"""
