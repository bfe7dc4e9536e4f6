"""Names that Gavel's code (OSDI'20) has for its policies, and how they are written here: a policy and its settings."""

from __future__ import annotations

_AWARE, _PACKED = "aware=true", "aware=true,packed=true"

WRITTEN_NOW = {
    "fifo_packed": f"fifo:{_PACKED}",
    "fifo_perf": f"fifo:{_AWARE}",
    "fifo_programme": "queue_order",
    "fifo_programme_packed": f"queue_order:{_PACKED}",
    "fifo_programme_perf": f"queue_order:{_AWARE}",
    "finish_time_fairness_agnostic_packed": "finish_time_fairness:packed=true,weighted=true",
    "finish_time_fairness_packed": f"finish_time_fairness:{_PACKED},weighted=true",
    "finish_time_fairness_perf": f"finish_time_fairness:{_AWARE}",
    "max_min_fairness_agnostic_packed": "max_min_fairness:packed=true",
    "max_min_fairness_packed": f"max_min_fairness:{_PACKED}",
    "max_min_fairness_perf": f"max_min_fairness:{_AWARE}",
    "max_min_fairness_water_filling": "water_filling",
    "max_min_fairness_water_filling_agnostic_packed": "water_filling:packed=true",
    "max_min_fairness_water_filling_packed": f"water_filling:{_PACKED}",
    "max_min_fairness_water_filling_perf": f"water_filling:{_AWARE}",
    "max_sum_throughput_normalized_by_cost": "max_sum_throughput:per_price=true",
    "max_sum_throughput_normalized_by_cost_packed": f"max_sum_throughput:{_PACKED},per_price=true",
    "max_sum_throughput_normalized_by_cost_packed_SLOs": (
        f"max_sum_throughput:{_PACKED},per_price=true,slos=true"
    ),
    "max_sum_throughput_normalized_by_cost_perf": f"max_sum_throughput:{_AWARE},per_price=true",
    "max_sum_throughput_normalized_by_cost_perf_SLOs": (
        f"max_sum_throughput:{_AWARE},per_price=true,slos=true"
    ),
    "max_sum_throughput_packed": f"max_sum_throughput:{_PACKED}",
    "max_sum_throughput_perf": f"max_sum_throughput:{_AWARE}",
    "min_cost_packed": f"min_cost:{_PACKED}",
    "min_cost_packed_SLOs": f"min_cost:{_PACKED},slos=true",
    "min_cost_perf": f"min_cost:{_AWARE}",
    "min_cost_perf_SLOs": f"min_cost:{_AWARE},slos=true",
    "min_total_duration_agnostic_packed": "min_total_duration:packed=true",
    "min_total_duration_packed": f"min_total_duration:{_PACKED}",
    "min_total_duration_perf": f"min_total_duration:{_AWARE}",
    "proportional_fairness_perf": f"proportional_fairness:{_AWARE}",
    "sjf_programme": "queue_order:order=shortest",
    "sjf_programme_packed": f"queue_order:order=shortest,{_PACKED}",
    "sjf_programme_perf": f"queue_order:order=shortest,{_AWARE}",
}
"""By the earlier name; all others have the name that they had."""
