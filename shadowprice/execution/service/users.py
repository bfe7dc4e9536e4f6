"""Users of a service: who somebody is, as the kernel says, and what each may do.

Jobs run as the user of the service. So everybody it lets in may run programs with that user's rights,
and a service of root lets nobody else in.
"""

from __future__ import annotations

import math
import os
import pwd
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shadowprice.errors import InputError, ShadowpriceError

_ROOT = 0


class NotAllowedError(ShadowpriceError):
    """A user asks for what belongs to another, or to the one who runs the service."""


@dataclass(frozen=True)
class User:
    """User of this machine.

    Parameters
    ----------
    uid : int
        Number, by which users are told apart.
    name : str
        Name, which is for people; the tenant of the user's jobs.
    """

    uid: int
    name: str

    @classmethod
    def of(cls, uid: int) -> User:
        """The user with a number."""
        try:
            return cls(uid, pwd.getpwuid(uid).pw_name)
        except (KeyError, OverflowError):
            return cls(uid, f"uid-{uid}")

    @classmethod
    def at(cls, connection: socket.socket) -> User:
        """The user whose process opened the other end of a Unix socket, by ``SO_PEERCRED``."""
        size = struct.calcsize("3i")
        about = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        return cls.of(struct.unpack("3i", about)[1])


@dataclass(frozen=True)
class Access:
    """Users that a service lets in.

    Parameters
    ----------
    owner : int
        The user that the service runs as, who may do everything; so may root.
    weights : mapping of int to float
        Other users, and the weight of their jobs.
    """

    owner: int = field(default_factory=os.getuid)
    weights: Mapping[int, float] = field(default_factory=dict)

    @classmethod
    def parse(cls, users: Sequence[str]) -> Access:
        """Access of the user who runs this, and of others as ``NAME`` or ``NAME:WEIGHT``.

        Raises
        ------
        InputError
            If there is no such user, a weight is no number above 0, or this is root's service, whose
            jobs would run as root.
        """
        owner, weights = os.getuid(), dict[int, float]()
        for text in users:
            name, colon, weight = text.partition(":")
            try:
                uid = pwd.getpwnam(name).pw_uid
            except KeyError:
                raise InputError(
                    f"--user {text}: there is no user {name!r}, expected NAME or NAME:WEIGHT"
                ) from None
            try:
                number = float(weight) if colon else 1.0
            except ValueError:
                number = math.nan
            if not 0 < number <= 1e9:
                raise InputError(f"--user {text}: weight is {weight!r}, expected a number above 0")
            weights[uid] = number
        if owner == _ROOT and set(weights) - {_ROOT}:
            raise InputError(
                "--user: this is root, and jobs run as the user of the service; run it as a user of its "
                "own to let others in"
            )
        return cls(owner, weights)

    @property
    def shared(self) -> bool:
        """True if it lets others in than the one who runs it."""
        return bool(set(self.weights) - {self.owner})

    def owns(self, user: User) -> bool:
        """True if a user may do everything."""
        return user.uid in (self.owner, _ROOT)

    def weight(self, user: User) -> float:
        """Weight of a user's jobs.

        Raises
        ------
        NotAllowedError
            If the user is not let in.
        """
        if user.uid in self.weights:
            return self.weights[user.uid]
        if self.owns(user):
            return 1.0
        raise NotAllowedError(
            f"user {user.name} is not let in by this service; ask the one who runs it for --user "
            f"{user.name}"
        )

    def expect_owner(self, user: User, what: str) -> None:
        """Refuse all but who may do everything.

        Raises
        ------
        NotAllowedError
            Naming what was asked for.
        """
        if not self.owns(user):
            raise NotAllowedError(f"user {user.name} may not {what}: only who runs the service may")
