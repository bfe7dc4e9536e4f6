"""Rules about the work of a job that is preempted."""

from __future__ import annotations

from enum import StrEnum

from shadowprice.errors import InputError


class Preemption(StrEnum):
    """Work that a job keeps which a policy stops before its end."""

    RESUME = "resume"
    """All of it: the next run goes on where this one stopped."""

    RESTART = "restart"
    """None of it: the next run starts from the beginning (kill and restart)."""

    @classmethod
    def parse(cls, text: str) -> Preemption:
        """The rule of this name.

        Raises
        ------
        InputError
            If there is none.

        Examples
        --------
        >>> Preemption.parse("restart").value
        'restart'
        """
        try:
            return cls(text)
        except ValueError:
            names = " or ".join(each.value for each in cls)
            raise InputError(f"preemption is {text!r}, expected {names}") from None
