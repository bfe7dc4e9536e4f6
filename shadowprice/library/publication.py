"""Publication: digests of the instances that have none yet; those of published ones never change.

``python -m shadowprice.library.publication`` adds them to the file of digests.
"""

from __future__ import annotations

import json

from shadowprice.analysis.certificates.certificate_file import instance_digest
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.library.collection import DIGESTS, instances
from shadowprice.library.library_instance import LibraryInstance, digest_of_text


def digests_of(which: LibraryInstance) -> dict[str, str]:
    """SHA-256 of the written form of an instance, and of its records in certificates.

    Raises
    ------
    InputError
        If it cannot be made.
    """
    return {
        "written": digest_of_text(which.text),
        "records": records_digest(which.instance()),
    }


def records_digest(instance: Instance) -> str:
    """SHA-256 of the records of an instance in certificates of all schedules that it allows."""
    pairs = ScheduleClass.allowed(instance, preemptive=True).sharing
    return instance_digest(instance, pairs=pairs)


def publish() -> list[str]:
    """Names of instances that are published now: they had no digest, and have one in the file."""
    published = json.loads(DIGESTS.read_text(encoding="ascii"))
    new = [each for each in instances() if each.name not in published]
    digests = {**published, **{each.name: digests_of(each) for each in new}}
    lines = [f" {json.dumps(name)}: {json.dumps(of)}" for name, of in sorted(digests.items())]
    DIGESTS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="ascii")
    return [each.name for each in new]


if __name__ == "__main__":
    print("\n".join(publish()))
