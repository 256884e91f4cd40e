import ipaddress

import pytest

from sojourn.errors import BadInput
from sojourn_trial.cluster.trial_network import TrialNetwork, Wire


@pytest.mark.parametrize("number", [0, 255])
def test_workers_have_addresses_and_names_of_their_own(number):
    network = TrialNetwork(number=number, token="f00")
    addresses = [network.driver_address, *map(network.address, range(1, 100))]
    assert len({*addresses}) == 100
    subnet = ipaddress.ip_network(f"10.77.{number}.0/24")
    assert all(ipaddress.ip_address(each) in subnet.hosts() for each in addresses)
    # the kernel allows 15 characters, and one end of a wire has one more
    assert len(network.namespace(99)) < 15


@pytest.mark.parametrize("rate", ["fast", "100", "10kbit", "-1mbit", "1tbit", "100mbit;"])
def test_a_rate_that_cannot_be_is_refused(rate):
    with pytest.raises(BadInput, match="write 100mbit"):
        Wire(rate=rate)


@pytest.mark.parametrize("delay_s", [-0.1, 11, float("nan")])
def test_a_delay_that_cannot_be_is_refused(delay_s):
    with pytest.raises(BadInput, match="is not possible; write 0 to 10 s"):
        Wire(delay_s=delay_s)
