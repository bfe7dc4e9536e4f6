"""Smallest gang first, in Python without this package: a command that speaks to the engine in lines of JSON.

``SealedPolicy(["python3", "-S", "smallest_gang_first.py"])``
"""

import json
import sys

waiting: dict[int, int] = {}
for line in sys.stdin:
    message = json.loads(line)
    if message["message"] == "hello":
        answer = {"version": 1, "name": "smallest-gang", "knows": [], "preemptive": False}
    elif message["message"] == "begin":
        waiting.clear()
        continue
    else:
        for placed in message.get("started", []):
            del waiting[placed[0]]
        waiting |= {job["job"]: job["gpus"] for job in message.get("arrived", [])}
        # Of those that are named, who does not fit goes on waiting.
        answer = {"start": [{"job": job} for job in sorted(waiting, key=lambda job: waiting[job])]}
    print(json.dumps(answer), flush=True)
