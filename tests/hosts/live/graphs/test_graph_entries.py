"""Job graphs in job files: what they may say, and one line for what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.errors import InputError
from shadowprice.hosts.live.graphs.run_graphs import PlacedReplicas, replicas_of
from shadowprice.hosts.live.job_file import entry_of, jobs_of, load_job_file
from shadowprice.hosts.protocol import Device
from shadowprice.instances.graphs.graph_file import graph_entry, job_graph_of
from shadowprice.instances.graphs.iteration_time import iteration_s
from shadowprice.instances.graphs.job_graph import JobGraph
from shadowprice.instances.graphs.named_graphs import NamedGraphs
from shadowprice.instances.graphs.network import Network
from shadowprice.instances.workload import Workload
from support.fake_queue import FakeQueue
from support.graph_strategies import job_graphs, mappings
from support.mapped_runs import NETWORK, NODES, graph

T5 = {"name": "t5-small", "pipeline": 2, "data": 3, "batch": 4, "flop_per_s": "15e12"}


def load(folder: Path, job: dict[str, Any], **more: Any) -> Any:
    entries = [{"name": "a", "command": ["x"], "iterations": 5, **job}]
    path = folder / "jobs.yaml"
    path.write_text(yaml.safe_dump({"network": NETWORK, "jobs": entries, **more}))
    return load_job_file(path)


def test_a_graph_says_the_gang(tmp_path: Path) -> None:
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs/t.yaml").write_text(yaml.safe_dump(graph(2, 1)))
    found = load(tmp_path, {"graph": "graphs/t.yaml"}, defaults={"gpus": 1, "throughput": 4})
    (job,) = found.jobs
    assert (job.gpus, job.throughput) == (3, None)
    assert job.graph == job_graph_of(graph(2, 1))
    assert found.network.of(cluster_of_six()) == Network(300e9, 1e9, 3)
    (inside,) = load(tmp_path, {"graph": {"model": T5}, "gpus": 6}).jobs
    assert [stage.replicas for stage in inside.graph.stages] == [3, 3]


def cluster_of_six() -> Any:
    from shadowprice.hosts.live.job_file import cluster_of

    return cluster_of(NODES)


def test_truth_values_of_links_are_read(tmp_path: Path) -> None:
    drawn = graph()
    drawn["links"][0]["exchange"] = True
    (job,) = load(tmp_path, {"graph": drawn}).jobs
    assert job.graph.links[0].exchange is True


def test_a_changed_graph_is_another_job_file(tmp_path: Path) -> None:
    """The file that is named counts, not its name alone."""
    digests = []
    for replicas in (2, 3, 2):
        (tmp_path / "t.yaml").write_text(yaml.safe_dump(graph(replicas)))
        digests.append(load(tmp_path, {"graph": "t.yaml"}).sha256)
    assert digests[0] == digests[2] != digests[1]


@pytest.mark.parametrize(
    ("job", "said"),
    [
        (
            {"graph": graph(), "gpus": 4},
            "job 1 (a): gpus is 4, expected 3, the replicas of its graph",
        ),
        ({"graph": graph(), "throughput": 3}, "has throughput and graph, expected one of the two"),
        ({"graph": 3}, "job 1 (a): graph: "),
        ({"graph": [1]}, "graph is ['1'], expected a file, {model: ...}"),
        ({"graph": "none.yaml"}, "none.yaml: "),
        ({"graph": {"model": {**T5, "pipeline": 0}}}, "graph: parallelism: pipeline is 0"),
        (
            {"graph": {"model": {**T5, "tensor": 1.5}}},
            "graph: model: tensor is 1.5, expected an integer",
        ),
        ({"graph": {"model": {**T5, "name": "t9"}}}, "t9"),
        ({"graph": {"model": {**T5, "experts": 2}}}, "unknown key 'experts'"),
        ({"graph": {"model": {**T5, "pipeline": 999}}}, "999"),
        ({"graph": {**graph(), "links": [{"from": "x", "to": "decoder"}]}}, "bytes_per_replica"),
    ],
)
def test_what_a_graph_cannot_be(tmp_path: Path, job: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path, job)
    told = str(caught.value)
    assert said in told
    assert "\n" not in told
    assert "jobs.yaml: job 1 (a): " in told


@pytest.mark.parametrize(
    ("network", "said"),
    [
        (
            {"intra_gb_per_s": 0, "nic_gb_per_s": 1},
            "network: intra_gb_per_s is 0.0, expected GB/s > 0",
        ),
        ({"intra_gb_per_s": 1}, "network: has no nic_gb_per_s"),
        ({**NETWORK, "sharing": "none"}, "sharing is 'none', expected"),
        ({**NETWORK, "latency": 1}, "network: unknown key 'latency'"),
    ],
)
def test_what_a_network_cannot_be(tmp_path: Path, network: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path, {"graph": graph()}, network=network)
    assert said in str(caught.value)


@given(job_graphs(max_stages=4, max_gpus=8))
def test_entries_make_the_job_again(drawn: JobGraph) -> None:
    entry = graph_entry(drawn)
    job = {"name": "a", "command": ["x"], "iterations": 5, "graph": entry}
    (made,) = jobs_of({"jobs": [job]}, "jobs", Path("/"))
    assert made.graph == drawn
    assert jobs_of({"jobs": [entry_of(made)]}, "jobs", Path("/")) == (made,)


def test_a_queue_takes_no_graphs(tmp_path: Path) -> None:
    run = FakeQueue(tmp_path / "r", [], policy="srtf", nodes=NODES, plan=[])
    ledger = run.execute()
    queue = run.queue()
    job = {"name": "a", "command": ["x"], "iterations": 5, "graph": graph()}
    with pytest.raises(
        InputError, match="job a: has a graph, expected none: a queue has no network"
    ):
        queue.add({"jobs": [job]}, "jobs", tmp_path)
    with pytest.raises(InputError, match="names network, expected none"):
        queue.add({"jobs": [job], "network": NETWORK}, "jobs", tmp_path)
    queue.close()
    ledger.close()


# Replicas and times.


@given(st.data())
def test_every_replica_has_one_device(data: st.DataObject) -> None:
    drawn = data.draw(job_graphs(max_stages=4, max_gpus=8))
    mapping = data.draw(mappings(drawn, 4))
    by_node = replicas_of(drawn, mapping)
    whole = [replica for here in by_node for replica in here]
    expected = [(stage.name, k) for stage in drawn.stages for k in range(stage.replicas)]
    assert sorted(whole) == sorted(expected)
    for (_, counts), here in zip(mapping, by_node, strict=True):
        names = [stage for stage, _ in here]
        assert [names.count(stage.name) for stage in drawn.stages] == list(counts)
    devices = [Device("n", k, f"n/{k}") for k in range(len(whole))]
    told = PlacedReplicas(mapping, by_node, 1.0).event_fields(devices)
    assert [tuple(row[1:]) for row in told["replicas"]] == whole  # type: ignore[attr-defined]


@given(st.data(), st.floats(0.01, 100.0))
def test_a_slower_graph_is_so_under_each_mapping(data: st.DataObject, factor: float) -> None:
    drawn = data.draw(job_graphs(max_stages=4, max_gpus=8))
    mapping = data.draw(mappings(drawn, 4))
    network = Network(1e10, 1e9, 4)
    before_s = iteration_s(drawn, mapping, network)
    after_s = iteration_s(drawn.slower(factor), mapping, network)
    assert after_s == pytest.approx(factor * before_s, rel=1e-9)


def test_graphs_of_jobs_by_name_are_read_back(tmp_path: Path) -> None:
    graphs = (job_graph_of(graph(2)), job_graph_of(graph(3)))
    named = NamedGraphs(graphs, {"a": 1, "b": 0}, str(tmp_path / "g.json"))
    named.save(tmp_path / "g.json")
    found = NamedGraphs.load(tmp_path / "g.json")
    assert found == named
    jobs = Workload.from_columns(id=["b", "a"], arrival_s=[0, 1], gpus=[3, 4], work=[1, 1])
    assert found.on(jobs, Network(1e9, 1e9, 4)).of.tolist() == [0, 1]
    other = Workload.from_columns(id=["c"], arrival_s=[0], gpus=[3], work=[1])
    with pytest.raises(InputError, match=r"g\.json: has no graph of job 'c'"):
        found.on(other, Network(1e9, 1e9, 4))
    (tmp_path / "g.json").write_text('{"graphs": [], "jobs": {"a": 0}}')
    with pytest.raises(InputError, match="jobs: a is 0, expected the position of a graph"):
        NamedGraphs.load(tmp_path / "g.json")
