"""Nodes and devices that a run misses, against a host that counts how often it is asked."""

from __future__ import annotations

from typing import cast

import pytest

from shadowprice.errors import HostError
from shadowprice.hosts.absent import AbsentDevices
from shadowprice.hosts.protocol import Device, DiscoveredNode, Host


def node(name, *slots):
    """A node with some of its devices."""
    return DiscoveredNode(name, "gpu", tuple(Device(name, k, f"{name}/{k}") for k in slots))


RUN = [node("one", 0, 1), node("two", 0)]


class Asked:
    """A host that has what it is given, or cannot be asked."""

    def __init__(self, *found):
        self.found, self.count, self.fails = list(found), 0, False

    def discover(self):
        self.count += 1
        if self.fails:
            raise HostError("no answer")
        return self.found


def absent(*found):
    host = Asked(*found)
    return host, AbsentDevices(cast(Host, host), RUN, host.found)


@pytest.mark.parametrize(
    ("found", "nodes", "devices"),
    [
        (RUN, set(), set()),
        ([*RUN, node("three", 0)], set(), set()),
        ([node("one", 0, 1)], {"two"}, {"two/0"}),
        ([node("one", 1), node("two", 0)], set(), {"one/0"}),
        ([node("two", 0)], {"one"}, {"one/0", "one/1"}),
        ([], {"one", "two"}, {"one/0", "one/1", "two/0"}),
    ],
)
def test_a_node_is_absent_when_none_of_its_devices_is_there(found, nodes, devices):
    _, missed = absent(*found)
    assert (missed.nodes, missed.devices) == (nodes, devices)


def test_nobody_is_asked_when_all_are_there():
    host, missed = absent(*RUN)
    for now_s in (0.0, 1.0, 1e6):
        missed.look(now_s)
    assert host.count == 0


def asked_at(missed, host, until_s):
    """Seconds at which the host is asked, when it is looked every half a second."""
    times_s = []
    for k in range(int(2 * until_s) + 1):
        before = host.count
        missed.look(k / 2)
        times_s += [k / 2] * (host.count - before)
    return times_s


@pytest.mark.parametrize("fails", [False, True])
def test_while_nothing_changes_it_is_asked_less_and_less_often(fails):
    host, missed = absent(node("one", 0))
    host.fails = fails
    assert asked_at(missed, host, 130) == [1, 3, 7, 15, 31, 61, 91, 121]
    assert missed.devices == {"one/1", "two/0"}


def test_what_goes_away_is_asked_for_soon():
    host, missed = absent(node("one", 0))
    assert asked_at(missed, host, 7) == [1, 3, 7]
    host.found = []
    missed.look(15.0)
    assert missed.devices == {"one/0", "one/1", "two/0"}
    missed.look(16.0)
    assert host.count == 5


def test_what_comes_back_is_asked_for_no_more_and_the_rest_at_once_again():
    host, missed = absent(node("one", 0))
    assert asked_at(missed, host, 7) == [1, 3, 7]
    host.found = [node("one", 0, 1)]
    missed.look(15.0)
    assert (missed.nodes, missed.devices) == ({"two"}, {"two/0"})
    count = host.count
    missed.look(15.5)
    assert host.count == count
    missed.look(16.0)
    assert host.count == count + 1
    host.found = RUN
    missed.look(18.0)
    assert (missed.nodes, missed.devices) == (set(), set())
    missed.look(1e6)
    assert host.count == count + 2
