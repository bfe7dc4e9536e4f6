"""Options and keys that were, and the words that are in their place."""

from __future__ import annotations

from dataclasses import dataclass

from shadowprice.instances.documents.named_settings import split_settings


@dataclass(frozen=True)
class RetiredOption:
    """An option that is a term now.

    Parameters
    ----------
    option, value : str
        The option, and what its value was.
    key : str
        Its key in the conditions of a study; empty if it had none.
    now : tuple of str
        What ``--with`` takes in its place; several where the value had several forms.
    """

    option: str
    value: str
    key: str
    now: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """Answer to who gives the option."""
        words = " or ".join(f"--with {each}" for each in self.now)
        return f"{self.option} {self.value} is now {words}"

    @property
    def key_sentence(self) -> str:
        """Answer to who has the key in a study."""
        return f"{self.key} is now with: {' or '.join(map(_as_mapping, self.now))}"


def _as_mapping(text: str) -> str:
    """A term as a study file has it."""
    name, settings = split_settings(text, "with")
    told = ", ".join(f"{key}: {value}" for key, value in settings.items())
    return f"{{{name}: {{{told}}}}}"


_LAW = "failures:law=LAW,mtbf_s=SECONDS,repair_s=SECONDS"

RETIRED = (
    RetiredOption("--start-cost", "SECONDS", "start_s", ("charges:start_s=SECONDS",)),
    RetiredOption("--restart-cost", "SECONDS", "restart_s", ("charges:restart_s=SECONDS",)),
    RetiredOption("--migration-cost", "SECONDS", "migration_s", ("charges:migration_s=SECONDS",)),
    RetiredOption(
        "--network",
        "INTRA:NIC[:SHARING]",
        "network",
        ("graphs:intra_gb_per_s=INTRA,nic_gb_per_s=NIC,nic_sharing=SHARING",),
    ),
    RetiredOption(
        "--job-graphs", "FILE", "", ("graphs:intra_gb_per_s=INTRA,nic_gb_per_s=NIC,file=FILE",)
    ),
    RetiredOption("--profiles", "published|FILE", "profiles", ("profiles", "profiles:file=FILE")),
    RetiredOption("--spread", "published|FILE", "spread", ("spread", "spread:file=FILE")),
    RetiredOption(
        "--grow",
        "WIDEST[:EFFICIENCY]|FILE",
        "grow",
        ("widths:widest=WIDEST,efficiency=EFFICIENCY", "widths:file=FILE"),
    ),
    RetiredOption(
        "--interference", "published|FILE", "interference", ("sharing", "sharing:file=FILE")
    ),
    RetiredOption("--quotas", "FILE@DATE", "", ("quotas:file=FILE,date=DATE",)),
    RetiredOption("--failures", "LAW:...|FILE", "failures", (_LAW, "failures:file=FILE")),
    RetiredOption(
        "--checkpoint-interval",
        "SECONDS",
        "checkpoint_interval_s",
        (f"{_LAW},interval_s=SECONDS",),
    ),
    RetiredOption(
        "--checkpoint-cost",
        "SECONDS",
        "checkpoint_cost_s",
        (f"{_LAW},interval_s=SECONDS,cost_s=SECONDS",),
    ),
    RetiredOption("--preemption", "restart", "preemption", ("restart",)),
    RetiredOption(
        "--until-complete",
        "FIRST:LAST[:LATEST]",
        "until_complete",
        ("window:first=FIRST,last=LAST,latest_s=LATEST",),
    ),
)


def retired_option(option: str) -> RetiredOption | None:
    """The retired option of this name, None if there is none."""
    return next((each for each in RETIRED if each.option == option), None)


def retired_key(key: object) -> RetiredOption | None:
    """The retired key of conditions of this name, None if there is none."""
    return next((each for each in RETIRED if each.key and each.key == key), None)
