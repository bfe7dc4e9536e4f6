"""Names of policies that are longer than a column: pictures of papers are drawn all the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shadowprice.analysis.plots.labels import legend_labels, wrapped
from shadowprice.studies.pictures import VENUES, pictures
from shadowprice.studies.run_study import study

NAMES = st.text("abcxyz:,=_/ 019", min_size=1, max_size=120).map(str.strip).filter(bool)


@given(name=NAMES, width=st.integers(4, 60))
def test_no_line_is_longer_than_the_width_and_no_letter_is_lost(name: str, width: int) -> None:
    lines = wrapped(name, width)
    assert max(map(len, lines)) <= width
    assert "".join("".join(lines).split()) == "".join(name.split())


@given(names=st.lists(NAMES, min_size=1, max_size=6, unique=True), width=st.integers(6, 40))
def test_labels_of_different_names_differ(names: list[str], width: int) -> None:
    labels = legend_labels(names, width)
    squeezed = ["".join(name.split()) for name in names]
    if len(set(squeezed)) == len(names):
        assert len(set(labels)) == len(names)


def test_long_names_of_policies_fit_in_the_columns_of_papers() -> None:
    results = study(
        {
            "study": "long names",
            "workloads": {"w": {"generator": "lognormal", "parameters": {"jobs": 8}}},
            "loads": [0.5, 0.8],
            "clusters": ["2x4"],
            "policies": {
                "max_sum_throughput_normalized_by_cost_packed_SLOs of the paper": "fifo",
                "las2d:thresholds_gpu_s=3200/6400/12800/25600,promote_knob=8": "las2d",
                "n" * 90: "srtf",
            },
            "seeds": 1,
            "bounds": {"objectives": ["flow"], "columns": 60},
        }
    )
    for venue, page in VENUES.items():
        every = pictures(results, page)
        assert {name.partition("-")[0] for name in every} == {"jct", "loads", "ratio"}
        for name, picture in every.items():
            page.finish(picture.draw(), f"{venue}, {name}")
