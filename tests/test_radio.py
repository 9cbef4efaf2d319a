"""The radio formulas, against values worked out by hand or printed in the standards."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xapp.radio.handover import a3_margin_db
from xapp.radio.pathloss import path_loss_db
from xapp.radio.rate import CQI_EFFICIENCY, bandwidth_mhz, cqi, rate_mbps
from xapp.radio.sinr import noise_dbm, sinr_db

dbs = st.floats(min_value=-30, max_value=50)


def one_user(received_dbm: list[float], load: list[float], noise: float) -> float:
    found = sinr_db(np.array([received_dbm]), np.array([0]), np.array(load), noise)
    assert found.shape == (1,)
    return float(found[0])


def test_without_interference_the_sinr_is_signal_less_noise() -> None:
    assert one_user([-70.0, -60.0], [1.0, 0.0], -100.0) == pytest.approx(30.0)


def test_an_interferer_as_strong_as_the_signal_leaves_no_more_than_0_db() -> None:
    # S / (I + N) with S = I and N a millionth of it
    assert one_user([-70.0, -70.0], [0.3, 1.0], -130.0) == pytest.approx(10 * math.log10(1 / (1 + 1e-6)))


def test_the_serving_cells_own_load_does_not_interfere() -> None:
    assert one_user([-70.0, -80.0], [0.0, 0.5], -100.0) == pytest.approx(one_user([-70.0, -80.0], [1.0, 0.5], -100.0))


@given(load=st.floats(0.05, 0.95), step=st.floats(0.01, 0.05))
def test_more_load_elsewhere_means_less_sinr(load: float, step: float) -> None:
    assert one_user([-70.0, -80.0], [1.0, load + step], -100.0) < one_user([-70.0, -80.0], [1.0, load], -100.0)


def test_noise_over_one_hertz_is_thermal_and_a_decade_of_bandwidth_adds_10_db() -> None:
    assert noise_dbm(1.0, 0.0) == -174.0
    assert noise_dbm(1e7, 9.0) == pytest.approx(-174.0 + 70.0 + 9.0)


def test_the_rate_at_0_db_is_the_bandwidth() -> None:
    assert float(rate_mbps(5.0, 0.0)) == pytest.approx(5.0)  # log2(1 + 1) = 1
    assert float(rate_mbps(2.0, 10 * math.log10(3))) == pytest.approx(4.0)  # log2(1 + 3) = 2


@given(rate=st.floats(0.01, 1000), sinr=dbs)
def test_the_bandwidth_for_a_rate_carries_that_rate(rate: float, sinr: float) -> None:
    assert float(rate_mbps(bandwidth_mhz(rate, sinr), sinr)) == pytest.approx(rate)


@given(low=dbs, high=dbs)
def test_a_better_channel_never_has_a_lower_cqi(low: float, high: float) -> None:
    low, high = min(low, high), max(low, high)
    assert 0 <= int(cqi(low)) <= int(cqi(high)) <= 15


@pytest.mark.parametrize("index", range(1, 16))
def test_each_cqi_begins_where_the_channel_carries_its_efficiency(index: int) -> None:
    threshold_db = 10 * math.log10(2 ** CQI_EFFICIENCY[index - 1] - 1)
    assert int(cqi(threshold_db + 1e-6)) == index
    assert int(cqi(threshold_db - 1e-6)) == index - 1


def test_path_loss_is_that_of_table_7_4_1_1_where_the_antennas_are_level() -> None:
    # 3-D distance 100 m at 1 GHz, 1.5 m user: PL'_NLOS = 13.54 + 39.08·2
    flat = math.sqrt(100.0**2 - 23.5**2)
    assert float(path_loss_db(np.array(flat), 1.0)) == pytest.approx(13.54 + 78.16)


def test_path_loss_grows_with_distance_and_is_held_below_10_m() -> None:
    losses = path_loss_db(np.array([1.0, 10.0, 50.0, 200.0, 1000.0]), 3.5)
    assert losses[0] == losses[1]
    assert (np.diff(losses[1:]) > 0).all()


def test_the_margin_is_positive_where_the_target_is_better() -> None:
    assert a3_margin_db(-90.0, -95.0) == 5.0
