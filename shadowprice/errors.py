"""Errors a user can act on.

::

    ShadowpriceError              base; the command line prints it and exits with code 2
    ├── InputError                an input is wrong: change the trace, cluster, option or file
    │   ├── InfeasibleJobError    a job can never run on its cluster
    │   └── EarlyEndError         a trace ends before what was to be measured in it
    ├── PolicyError               a policy decided something impossible: change the policy
    │   └── AbandonedRunError          a run was given up at the time that was asked for
    ├── VerificationError         a schedule breaks a rule: nothing may be computed from it
    ├── SolverError               a programme could not be solved: change the model or the budget
    └── HostError                 real hosts cannot be used: install, start or free what is named
"""


class ShadowpriceError(Exception):
    """Base class of the errors this package raises on purpose."""


class InputError(ShadowpriceError, ValueError):
    """An input from outside is wrong; the message names what, where and what was expected."""


class InfeasibleJobError(InputError):
    """A job can never run on its cluster, whatever the schedule."""


class EarlyEndError(InputError):
    """A trace ends before the jobs that were to be measured are complete."""


class PolicyError(ShadowpriceError, RuntimeError):
    """A policy returned a decision that cannot be carried out."""


class AbandonedRunError(PolicyError):
    """Jobs that were to be measured were not complete at the time at which a run was to be given up."""


class VerificationError(ShadowpriceError):
    """A schedule violates its instance; the message names the first violated row."""


class SolverError(ShadowpriceError, RuntimeError):
    """A mathematical programme could not be solved as asked."""


class HostError(ShadowpriceError, RuntimeError):
    """Hosts that should run jobs cannot; the message says what to install, start or free."""
