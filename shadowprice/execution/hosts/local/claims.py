"""Claims on the GPUs of one machine: a locked file for each, so that two runs never share one."""

from __future__ import annotations

import os
import re
import stat
import time
from pathlib import Path

from shadowprice.errors import HostError
from shadowprice.execution.supervision.files import lock_within


def claims_folder() -> Path:
    """Folder of one user on one machine; not in the state directory, which is one run's.

    Raises
    ------
    HostError
        If somebody else made it, or it cannot be made.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    usable = runtime and os.path.isdir(runtime) and os.access(runtime, os.W_OK)
    folder = (
        Path(runtime or "", "shadowprice") if usable else Path(f"/tmp/shadowprice-{os.getuid()}")
    )
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        about = folder.lstat()
    except OSError as error:
        raise HostError(f"folder of claims on GPUs {folder}: {error.strerror}") from None
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & 0o077:
        raise HostError(
            f"folder of claims on GPUs {folder}: expected a folder of mode 0700 of user {os.getuid()}, "
            f"got {stat.filemode(about.st_mode)} of user {about.st_uid}: remove it"
        )
    return folder


class DeviceClaims:
    """Locks on devices, held while a driver or one of its supervisors lives.

    A lock belongs to the open file, which supervisors inherit. The file says whose it is, so that
    a driver that is started again knows the devices of its run from those of others.
    """

    def __init__(self, folder: Path, run_id: str) -> None:
        self.folder = folder
        self.run_id = run_id
        self._held: dict[str, int] = {}

    def claim(self, uuid: str, wait_s: float = 0.0) -> int | None:
        """Descriptor that holds a device's lock, None while another holds it.

        Raises
        ------
        HostError
            If the file cannot be opened.
        """
        if uuid in self._held:
            return self._held[uuid]
        path = self._path(uuid)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise HostError(f"claim on device {uuid}: {path}: {error.strerror}") from None
        if not lock_within(descriptor, wait_s):
            os.close(descriptor)
            return None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, self.run_id.encode(), 0)
        self._held[uuid] = descriptor
        return descriptor

    def holder(self, uuid: str) -> str:
        """Run that holds, or held, a device."""
        time.sleep(0.01)  # who just locked it is about to write its name
        try:
            return self._path(uuid).read_text(errors="replace")[:200]
        except OSError:
            return ""

    def release(self, uuid: str) -> None:
        """Let go of a device; what supervisors inherited stays locked until they end."""
        if uuid in self._held:
            os.close(self._held.pop(uuid))

    def release_all(self) -> None:
        """Let go of all."""
        for uuid in list(self._held):
            self.release(uuid)

    def _path(self, uuid: str) -> Path:
        return self.folder / (re.sub(r"[^A-Za-z0-9.-]", "_", uuid) + ".lock")
