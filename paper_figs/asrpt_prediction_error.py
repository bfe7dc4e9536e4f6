"""A-SRPT, Figure 4: share of jobs per prediction error, learnt online from completed jobs only.

Recurrent jobs (see ``instances/generators/recurrent.py``; the paper uses Alibaba PAI's trace, whose
numbers are not known to us); predictions are those made at arrival in a FIFO run. Run:
``python paper_figs/asrpt_prediction_error.py`` (a minute), ``--quick``; writes
paper_figs/out/asrpt_prediction_error.{csv,png}.
"""

import pandas as pd
from _asrpt import arguments, network, run, save, trace
from matplotlib.figure import Figure

from shadowprice.analysis.calibration import Calibration, plot_calibration
from shadowprice.solvers.predictors.predictor import Features, predict_online, predictor

PREDICTORS = ("forest", "median", "last")

if __name__ == "__main__":
    given = arguments(__doc__ or "")
    jobs = trace(1_000 if given.quick else 20_000, 0.9, 256, 0, network())
    ends = run(jobs, 256, "fifo", network()).end_s
    found = {}
    for name in PREDICTORS:
        made = predict_online(predictor(name), Features.of(jobs), jobs.work, jobs.arrival_s, ends)
        found[name] = Calibration.of(made, jobs.work)
    figure = Figure(figsize=(7, 4), layout="constrained")
    plot_calibration(found, figure.add_subplot())
    frame = pd.concat(
        [report.table().assign(predictor=name) for name, report in found.items()], ignore_index=True
    )
    save(frame, figure, "asrpt_prediction_error")
