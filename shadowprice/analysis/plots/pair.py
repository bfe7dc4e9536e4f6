"""Two schedules of one instance, one above the other: what a policy did, and what was possible."""

from __future__ import annotations

from fractions import Fraction

from matplotlib.figure import Figure

from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.plots.gantt import gantt
from shadowprice.analysis.plots.style import GREY
from shadowprice.analysis.wording import at_least, at_most
from shadowprice.errors import InputError
from shadowprice.instances.objective import Objective

_WORDS = {
    Objective.COMPLETION: "total completion time",
    Objective.FLOW: "total flow time",
    Objective.MAKESPAN: "makespan",
}


def plot_pair(
    policy: Outcome, witness: Outcome, objective: Objective, *, bound: Fraction | None = None
) -> Figure:
    """Draw a policy's schedule above a better one, on one time axis, colours by job.

    Parameters
    ----------
    policy, witness : Outcome
        Verified, of the same jobs on the same GPUs.
    objective : Objective
        Whose costs are written beside the names.
    bound : Fraction, optional
        Factor by which a theorem bounds the policy on this instance.

    Raises
    ------
    InputError
        If the two are of different instances.
    """
    ids = [each.instance.workload.id.tolist() for each in (policy, witness)]
    gpus = [each.instance.cluster.total_gpus for each in (policy, witness)]
    if ids[0] != ids[1] or gpus[0] != gpus[1]:
        raise InputError("a pair of schedules: jobs or GPUs differ, expected the same instance")
    workload = policy.instance.workload
    costs = [objective.cost_s(workload, each.end_s) for each in (policy, witness)]
    until_s = 1.02 * max(float(each.end_s.max()) for each in (policy, witness))
    height_in = min(max(1.6, 0.25 * gpus[0] + 1.0), 4.5)
    figure = Figure(figsize=(9.0, 2 * height_in + 0.6), layout="constrained")
    above, below = figure.subplots(2, 1)
    word = _WORDS[objective]
    gantt(
        policy.instance,
        policy.schedule,
        above,
        until_s=until_s,
        title=f"{policy.policy}: {word} {costs[0]:g} s",
    )
    gantt(
        witness.instance,
        witness.schedule,
        below,
        until_s=until_s,
        title=f"a schedule that was possible: {word} {costs[1]:g} s",
    )
    for axes in (above, below):
        axes.yaxis.get_major_locator().set_params(integer=True)
        for arrival_s in set(workload.arrival_s.tolist()) - {0.0}:
            scale = axes.get_xlim()[1] / until_s
            axes.axvline(arrival_s * scale, color=GREY, linewidth=0.7, linestyle=":")
    above.set_xlabel("")
    limit = "" if bound is None else f"; a theorem allows {at_most(bound)} at most"
    figure.suptitle(
        f"{policy.policy} costs {at_least(Fraction(costs[0]) / Fraction(costs[1]))} or more of what was "
        "possible on these "
        f"{len(workload)} jobs{limit}",
        fontsize=11,
    )
    if workload.arrival_s.any():
        figure.supxlabel("dotted: arrivals after 0", fontsize=8, color=GREY)
    return figure
