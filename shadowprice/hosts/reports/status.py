"""Status of a real run, as plain data and as words."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from shadowprice.hosts.reports.jobs import job_rows
from shadowprice.hosts.reports.run import RunReader
from shadowprice.hosts.reports.timeline import Row, ending_words
from shadowprice.instances.entries import printable

_LONGEST = 200


def status_record(run: RunReader, events: int = 10) -> dict[str, Any]:
    """The run, its jobs, its nodes and its last events, for JSON; times in seconds of the run."""
    holders = run.timeline.holders()
    facts = {key: run.facts[key] for key in ("run_id", "policy", "hosts", "round_s")}
    nodes = [
        {
            "name": node.name,
            "gpu_type": node.gpu_type,
            "lost": node.name in run.timeline.lost_nodes,
            "devices": [
                {
                    "index": device.index,
                    "uuid": device.uuid,
                    "held_by": [hold.job for hold in holders.get(device.uuid, [])],
                    "quarantined": device.uuid in run.timeline.quarantined,
                }
                for device in node.devices
            ],
        }
        for node in run.nodes
    ]
    last = list(run.last_events)[-events:] if events else []
    return {
        **facts,
        "driver": run.driver,
        "driver_waits": run.waits,
        "began": None if (began := run.date(0.0)) is None else began.isoformat(timespec="seconds"),
        "now_s": run.now_s,
        "jobs": [asdict(row) for row in job_rows(run)],
        "nodes": nodes,
        "events": [dict(event) for event in last],
    }


def event_words(run: RunReader, event: Row) -> str:
    """One event in words, without its time."""
    kind, data = str(event["kind"]), event["data"]
    subject = str(event["job"]) + (f" (epoch {event['epoch']})" if event["epoch"] else "")
    if kind == "granted":
        where = " ".join(map(run.device_label, data["devices"]))
        shared = f", shared with {data['partner']}" if data.get("partner") else ""
        words = f"{subject} gets {where}{shared}, from step {data.get('from_step') or 0:,}"
    elif kind == "running":
        words = f"{subject} runs, {float(data.get('after_s') or 0.0):.1f} s after the grant"
    elif kind == "partner":
        words = f"{subject} " + (
            f"shares with {data['partner']}" if data.get("partner") else "is alone"
        )
    elif kind == "stop-asked":
        words = f"{subject} is asked to stop" + _because(data.get("why"))
    elif kind == "released":
        words = f"{subject} ended, its devices are free: {_ending(data)}"
    elif kind == "decided":
        words = f"decided: {_decision(data)}"
    else:
        words = _other(run, kind, subject, data)
    return printable(words)


def _other(run: RunReader, kind: str, subject: str, data: Row) -> str:
    device = run.device_label(str(data.get("device", "")))
    words = {
        "driver-started": "the driver goes on" if data.get("resumed") else "the driver begins",
        "driver-ended": "the driver ended",
        "arrived": f"{subject} arrives",
        "damaged": f"{subject} found its checkpoint damaged, goes on at step {data.get('step') or 0:,}",
        "failed": f"{subject} failed",
        "finished": f"{subject} finished at step {data.get('step') or 0:,}",
        "gave-up": f"{subject} is given up after {data.get('tries')} tries",
        "retried": f"{subject} is taken up again at step {data.get('step') or 0:,}",
        "cancelled": f"{subject} is cancelled",
        "node-lost": f"node {data.get('node')} does not answer",
        "node-back": f"node {data.get('node')} is back",
        "quarantined": f"{device} is quarantined",
        "unquarantined": f"{device} is free again",
        "note": str(data.get("text", "")),
    }
    again = f", again in {data['back_off_s']:.0f} s" if data.get("back_off_s") else ""
    return words.get(kind, f"{kind} {subject}".strip()) + _because(data.get("why")) + again


def _ending(data: Row) -> str:
    words = ending_words(data.get("reason"), data.get("code"), data.get("forced"))
    words.append(f"step {data.get('step') or 0:,}")
    if data.get("lost_steps"):
        words.append(f"{data['lost_steps']:,} steps lost")
    return ", ".join(words)


def _decision(data: Row) -> str:
    starts, stops, waiting = (data.get(key) or () for key in ("starts", "stops", "waiting"))
    return f"{len(starts)} start, {len(stops)} stop, {len(waiting)} wait"


def _because(why: object) -> str:
    return f": {shortened(str(why))}" if why else ""


def shortened(text: str) -> str:
    """A reason that fits a line or two: of a long one the first and the last words.

    >>> len(shortened("word " * 500))
    200
    """
    if len(text) <= _LONGEST:
        return text
    end = _LONGEST // 2
    return f"{text[: _LONGEST - end - 5]} ... {text[-end:]}"
