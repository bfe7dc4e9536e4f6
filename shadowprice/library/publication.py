"""Publication: digests and counts of instances that have none yet; those of published ones never change.

``python -m shadowprice.library.publication`` adds them to the two files.
"""

from __future__ import annotations

from shadowprice.analysis.certificates.certificate_file import instance_digest
from shadowprice.instances.documents.plain_data import plain, text_of
from shadowprice.instances.files import read_json
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.library.collection import DIGESTS, instances
from shadowprice.library.job_counts import JOB_COUNTS, JobCounts
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
    """Names of instances that are published now: they had no digest, and have one in the file.

    Raises
    ------
    InputError
        If one cannot be made.
    """
    digests, counts = read_json(DIGESTS), read_json(JOB_COUNTS)
    new = [each for each in instances() if each.name not in digests]
    for each in new:
        digests[each.name] = digests_of(each)
        counts[each.name] = plain(JobCounts.of(each.instance()))
    for path, found in ((DIGESTS, digests), (JOB_COUNTS, counts)):
        path.write_text(text_of(dict(sorted(found.items()))), encoding="ascii")
    return [each.name for each in new]


if __name__ == "__main__":
    print("\n".join(publish()))
