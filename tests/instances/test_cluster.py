"""Clusters: what the short notation and the file mean, and what is refused."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.errors import InputError
from shadowprice.instances.cluster import ANY_TYPE, MAX_GPUS_PER_NODE, MAX_NODES, Cluster, Node
from shadowprice.instances.strategies import clusters

TYPES = st.sampled_from([ANY_TYPE, "v100", "p100", "a100-80gb", "H_200.x"])
AMOUNT = st.sampled_from([0.0, 24.0, 62.5, 500.0]) | st.floats(0, allow_infinity=False)
MIXED = st.lists(
    st.builds(Node, gpus=st.integers(1, 16), gpu_type=TYPES, cpus=AMOUNT, memory_gb=AMOUNT),
    min_size=1,
    max_size=8,
).map(lambda nodes: Cluster(tuple(nodes)))


@given(cluster=MIXED)
def test_the_notation_gives_the_cluster_back(cluster: Cluster) -> None:
    assert Cluster.parse(str(cluster)) == cluster


@given(cluster=MIXED)
def test_totals_agree_with_the_nodes(cluster: Cluster) -> None:
    assert cluster.total_gpus == sum(node.gpus for node in cluster.nodes)
    assert cluster.gpus_per_node.tolist() == [node.gpus for node in cluster.nodes]
    assert cluster.gpu_types == tuple(dict.fromkeys(node.gpu_type for node in cluster.nodes))
    for k, name in enumerate(cluster.gpu_types):
        mine = [node.gpus for node in cluster.nodes if node.gpu_type == name]
        assert cluster.gpus_per_type[k] == sum(mine)
    names = [cluster.gpu_types[k] for k in cluster.type_of_node]
    assert names == [node.gpu_type for node in cluster.nodes]
    assert sum(count for count, _ in cluster.groups()) == len(cluster.nodes)


@given(cluster=clusters(max_nodes=4, max_gpus=3))
def test_drawn_clusters_keep_their_bounds(cluster: Cluster) -> None:
    assert 1 <= len(cluster.nodes) <= 4
    assert all(1 <= node.gpus <= 3 for node in cluster.nodes)


def test_white_space_and_groups() -> None:
    cluster = Cluster.parse(" 2 x 4 : v100 , 1x8")
    assert [(node.gpus, node.gpu_type) for node in cluster.nodes] == [
        (4, "v100"),
        (4, "v100"),
        (8, ANY_TYPE),
    ]


def test_cpus_and_memory() -> None:
    cluster = Cluster.parse("16x8:v100+24cpu+500gb, 2x4 + 12.5 cpu, 1x1:a + 2e3 gb")
    assert cluster.nodes[0] == Node(8, "v100", cpus=24.0, memory_gb=500.0)
    assert cluster.nodes[16] == Node(4, cpus=12.5)
    assert cluster.nodes[18] == Node(1, "a", memory_gb=2000.0)
    assert str(cluster) == "16x8:v100+24cpu+500gb,2x4+12.5cpu,1x1:a+2000gb"


@pytest.mark.parametrize(
    "spec",
    [
        "",
        " ",
        "x",
        "4",
        "4x",
        "x4",
        "0x4",
        "4x0",
        "-1x4",
        "1.5x4",
        "1e3x4",
        "4X4",
        "4*4",
        "4x4,",
        ",4x4",
        "4x4+",
        "4x4+cpu",
        "4x4+24",
        "4x4+24gb+2cpu",
        "4x4+2cpu+2cpu",
        "4x4+-2cpu",
        "4x4+infgb",
        "4x4+1e999cpu",
        "4x4:",
        "4x4::a",
        "4x4:a b",
        "4x4:ä",
        "٣x٤",
        f"{MAX_NODES + 1}x1",
        f"{MAX_NODES}x1,1x1",
        f"1x{MAX_GPUS_PER_NODE + 1}",
        "1x99999999999999999999",
        "9" * 5000 + "x1",
        "1x" + "9" * 5000,
        None,
        5,
    ],
)
def test_what_is_no_notation(spec: Any) -> None:
    with pytest.raises(InputError, match=r"cluster|node"):
        Cluster.parse(spec)


@given(spec=st.text(alphabet="0123456789x:,av +cpugb.e", max_size=12))
def test_any_text_is_a_cluster_or_an_explained_error(spec: str) -> None:
    try:
        cluster = Cluster.parse(spec)
    except InputError:
        return
    assert Cluster.parse(str(cluster)) == cluster


def test_sums_are_exact_for_large_clusters() -> None:
    cluster = Cluster.parse(f"3x{MAX_GPUS_PER_NODE}:a,2x1:b")
    assert cluster.gpus_per_type.tolist() == [3 * MAX_GPUS_PER_NODE, 2]
    assert cluster.gpus_per_type.dtype == np.int64


def toml(directory: Path, text: str | bytes) -> Path:
    path = directory / "cluster.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_file(tmp_path: Path, mark: str) -> None:
    text = """
        [[nodes]]
        count = 2
        gpus = 4
        gpu_type = "v100"
        cpus = 24
        memory_gb = 500.0
        [[nodes]]
        gpus = 8
    """
    cluster = Cluster.load(toml(tmp_path, mark + text))
    assert str(cluster) == "2x4:v100+24cpu+500gb,1x8"
    assert cluster.nodes[0] == Node(4, "v100", cpus=24, memory_gb=500.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("[[node]]\ngpus = 4", "unknown key 'node'; did you mean 'nodes'"),
        ("nodes = 3", "at least one"),
        ("nodes = [1]", "table 1: is 1, expected a mapping with gpus"),
        ("[nodes]\ngpus = 4", "at least one"),
        ("[[nodes]]", r"table 1: has no gpus"),
        ("[[nodes]]\ngpus = true", "gpus is True"),
        ("[[nodes]]\ngpus = 1.5", "gpus is 1.5"),
        ("[[nodes]]\ngpus = 99999999999999999999", "gpus is 99999999999999999999"),
        ("[[nodes]]\ngpus = 4\ncount = 0", "count is 0"),
        ("[[nodes]]\ngpus = 4\ncount = true", "count is True"),
        ("[[nodes]]\ngpus = 4\nfoo = 1", "unknown key 'foo'; expected count, gpus, gpu_type"),
        ("[[nodes]]\ngpus = 4\n[[nodes]]\ngpus = 4\ngpu_type = 5", "table 2: node: gpu_type is 5"),
        ("[[nodes]]\ngpus = 4\ncpus = nan", "cpus is nan"),
        ("[[nodes]]\ngpus = 4\ncpus = inf", "cpus is inf"),
        ("[[nodes]]\ngpus = 4\nprice_per_hour = -1", "price_per_hour is -1"),
        ("[[nodes]\n", "is not TOML"),
        (b"\xff\xfe", "is UTF-16 text, expected UTF-8"),
        ('[[nodes]]\ngpus = 4\ngpu_type = "a\\nb"', "expected text on one line"),
    ],
)
def test_a_file_that_is_wrong_is_named(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        Cluster.load(toml(tmp_path, text))
    assert "cluster.toml" in str(caught.value)


def test_missing_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "folder.toml").mkdir()
    for name, message in (("none.toml", "no such file"), ("folder.toml", "is a directory")):
        with pytest.raises(InputError, match=message):
            Cluster.load(tmp_path / name)


@pytest.mark.parametrize("nodes", [(), (1,), "ab", [None]])
def test_nodes_must_be_nodes(nodes: Any) -> None:
    with pytest.raises(InputError, match="cluster"):
        Cluster(nodes)


def test_a_million_nodes() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Cluster.parse(f"{MAX_NODES}x8").gpus_per_type.tolist() == [8 * MAX_NODES]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 8), st.sampled_from(["a", "b"]), st.sampled_from(["", "r1", "r2"])
        ),
        min_size=1,
        max_size=6,
    )
)
def test_lists_of_nodes_are_read_as_they_are(
    tmp_path_factory: pytest.TempPathFactory, nodes: list[tuple[int, str, str]]
) -> None:
    path = tmp_path_factory.mktemp("nodes") / "nodes.csv"
    rows = [f"{gpus},{kind},{rack}" for gpus, kind, rack in nodes]
    path.write_text("\n".join(["gpus,gpu_type,rack", *rows]))
    kept = [each for each in nodes if each[0]]
    if not kept:
        with pytest.raises(InputError, match="has no node with GPUs"):
            Cluster.load(path)
        return
    cluster = Cluster.load(path)
    assert [(node.gpus, node.gpu_type, node.rack) for node in cluster.nodes] == kept
    assert cluster.rack_of_node.tolist() == [rack for *_, rack in kept]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sn,gpus\na,1\n", "columns sn, gpus are of no list of nodes, expected gpus"),
        ("gpus,cpus\n1,many\n", "row 1: .*many.*, expected numbers"),
        ("gpus,cpus\n1\n", "row 1 has 1 values, expected 2"),
        ("gpus,cpus\n1,-4\n", "node 1: node: cpus is -4.0, expected a finite number >= 0"),
    ],
)
def test_a_list_of_nodes_that_is_none(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        Cluster.load(path)


SAMPLES = Path(__file__).resolve().parents[3] / "shared" / "data" / "trace_samples"


@pytest.mark.skipif(not SAMPLES.exists(), reason="the samples of public traces are absent")
@pytest.mark.parametrize(
    ("name", "gpus", "nodes"),
    [
        ("openb2023/openb_node_list_all_node.csv", 6212, 1213),
        ("openb2023/openb_node_list_gpu_node.csv", 6212, 1213),
        ("spot2026/node_info_df.csv", 10412, 4278),
        ("pai2020/pai_machine_spec.tar.gz", 6742, 1814),
    ],
)
def test_published_lists_of_nodes(name: str, gpus: int, nodes: int) -> None:
    cluster = Cluster.load(SAMPLES / name)
    assert (cluster.total_gpus, len(cluster.nodes)) == (gpus, nodes)
