"""Formula tools of the link: capacity, power and noise, path loss, fading, antennas and amplifiers.

Sources: Shannon's capacity; Friis' and the two-ray model (Rappaport, Wireless Communications); log-normal shadowing.
"""

from __future__ import annotations

import math
from typing import Final

from simulators.optbench.base.formula import LIGHT_M_S, Formula, Reading, decibel, formula, linear, tail, tail_inverse

_BAND: Final = ("MHz", (0.2, 1.4, 3.0, 5.0, 10.0, 15.0, 20.0, 40.0))
_SNR_DB: Final = ("dB", (3.0, 5.0, 7.5, 10.0, 13.0, 16.0, 21.0))
_SNR: Final = ("1", (0.3, 0.8, 2.0, 4.0, 9.0, 25.0))
_DBM: Final = ("dBm", (-110.0, -97.0, -85.0, -73.0, -60.0, -20.0, 13.0, 23.0, 37.0))
_POWER_MW: Final = ("mW", (1.0, 2.0, 3.0, 6.0, 8.0))
_DENSITY: Final = ("1 W/Hz", (1e-10, 4e-9, 3e-8, 5e-7))
_GHZ: Final = ("GHz", (0.7, 0.9, 1.8, 2.6, 3.5))
_SHADOW: Final = ("dB", (4.0, 6.0, 7.5, 9.0, 10.0))


def _gain(frequency_ghz: float, distance_m: float) -> float:
    """Free-space gain between isotropic antennas."""
    return (LIGHT_M_S / (frequency_ghz * 1e9) / (4.0 * math.pi * distance_m)) ** 2


LINK: Final[tuple[Formula, ...]] = (
    formula(
        "capacity",
        {"bandwidth": _BAND, "snr": _SNR_DB},
        "Mbit/s",
        lambda bandwidth, snr: bandwidth * math.log2(1.0 + linear(snr)),
        "What is the Shannon capacity in Mbit/s of an AWGN channel {bandwidth} wide at an SNR of {snr}?",
        r"(?:capacity|channel).*(?:B=|bandwidth ){bandwidth}(?:,| and) (?:output )?SNR ?=? "
        r"?{snr}\..*(?:compute|capacity)",
        r"capacity of a {bandwidth} telephone channel at output SNR {snr}",
        beside=("Shannon", "AWGN", "channel", "capacity", "C"),
    ),
    formula(
        "capacity_linear",
        {"bandwidth": _BAND, "snr": _SNR},
        "Mbit/s",
        lambda bandwidth, snr: bandwidth * math.log2(1.0 + snr),
        "What is the Shannon capacity in Mbit/s of an AWGN channel {bandwidth} wide whose linear SNR is {snr}?",
        r"capacity with SNR={snr} \(linear\) and bandwidth B={bandwidth}\.",
        r"capacity\. B={bandwidth}, SNR={snr} \(linear\)",
        beside=("Shannon", "AWGN", "channel", "C"),
    ),
    formula(
        "efficiency_of_snr",
        {"snr": ("dB", (1.0, 3.0, 5.0, 7.5, 10.0, 13.0, 16.0, 21.0))},
        "1 bit/s/Hz",
        lambda snr: math.log2(1.0 + linear(snr)),
        "Which spectral efficiency in bit/s/Hz does Shannon allow at an SNR of {snr}?",
        r"If SNR={snr}, compute C/B",
        r"capacity per unit bandwidth for SNR={snr}\.",
        beside=("Shannon", "spectral efficiency"),
    ),
    formula(
        "snr_of_efficiency",
        {"efficiency": ("1 bit/s/Hz", (0.5, 1.5, 2.5, 3.0, 6.0, 7.5))},
        "dB",
        lambda efficiency: decibel(2.0**efficiency - 1.0),
        "Which SNR in dB does Shannon's bound demand for a spectral efficiency of {efficiency}?",
        r"spectral efficiency required is {efficiency}, find required SNR",
        r"capacity per Hz C/B={efficiency}\. Find SNR in dB",
        beside=("Shannon", "channel"),
    ),
    formula(
        "snr_of_capacity",
        {"bit_rate": ("Mbit/s", (5.0, 12.0, 18.0, 30.0)), "bandwidth": ("MHz", (3.0, 5.0, 10.0, 15.0))},
        "dB",
        lambda bit_rate, bandwidth: decibel(2.0 ** (bit_rate / bandwidth) - 1.0),
        "Which SNR in dB lets an AWGN channel {bandwidth} wide carry {bit_rate}, by Shannon?",
        r"capacity C={bit_rate} and bandwidth B={bandwidth}\. Find required SNR",
        r"B={bandwidth} and desired C={bit_rate}, find required SNR",
        beside=("AWGN", "channel", "SNR for capacity"),
    ),
    formula(
        "capacity_uplink",
        {"power_first": _POWER_MW, "power_second": _POWER_MW, "noise": ("mW", (0.5, 1.0, 2.0)), "bandwidth": _BAND},
        "Mbit/s",
        lambda power_first, power_second, noise, bandwidth: (
            bandwidth * math.log2(1.0 + power_first / (power_second + noise))
        ),
        "Two users share an uplink of {bandwidth}; they arrive with {power_first} and {power_second}, the noise is "
        "{noise}. "
        "The first is decoded first. Which rate in Mbit/s can it have?",
        r"P1={power_first}, P2={power_second}, (?:noise )?N={noise}, B={bandwidth}\. (?:User|If user) 1 decoded "
        r"first.*C1",
        Reading(
            r"P1=P2={power_first}, noise N={noise}, bandwidth B={bandwidth}\. If user 1 decoded first, compute C1",
            {"power_second": "power_first"},
        ),
        beside=("(?:two|2)-user uplink", "capacity", r"=B log2\(1\+P1/\(P2\+N\)\)"),
    ),
    formula(
        "spectral_efficiency",
        {"bit_rate": ("Mbit/s", (3.0, 8.0, 27.0)), "bandwidth": ("MHz", (5.0, 10.0, 15.0))},
        "1 bit/s/Hz",
        lambda bit_rate, bandwidth: bit_rate / bandwidth,
        "A link carries {bit_rate} in {bandwidth}. What is its spectral efficiency in bit/s/Hz?",
        r"C1={bit_rate} in B={bandwidth}, what is the corresponding spectral efficiency",
        beside=("two-user uplink", "C1/B"),
    ),
    formula(
        "watts",
        {"level": _DBM},
        "W",
        lambda level: linear(level - 30.0),
        "How many watts are {level}?",
        r"convert (?:received power |noise power )?{level} to watts",
        r"noise power is {level}\. Convert to watts",
    ),
    formula(
        "dbm",
        {"power": ("W", (2e-12, 5e-10, 3e-6, 0.004, 0.25, 8.0))},
        "dBm",
        lambda power: decibel(power) + 30.0,
        "Express {power} in dBm.",
        r"convert received power {power} to dBm",
    ),
    formula(
        "density_watts",
        {"level": ("1 dBm/Hz", (-170.0, -166.0, -160.0, -155.0))},
        "1 W/Hz",
        lambda level: linear(level - 30.0),
        "Express a noise density of {level} in W/Hz.",
        r"convert noise {level} to W/Hz",
    ),
    formula(
        "ratio_linear",
        {"level": ("dB", (1.5, 2.5, 4.0, 6.5, 9.0, 12.0))},
        "1",
        linear,
        "Which linear power ratio are {level}?",
        r"If Eb/N0={level}, what is Eb/N0 in linear",
        r"requires {level} extra transmit power.*linear factor",
        r"power increase relative to AWGN is {level}, what is the linear factor",
        beside=("fading link", "relative to AWGN"),
    ),
    formula(
        "ratio_db",
        {"ratio": ("1", (1.5, 3.0, 6.0, 14.0, 70.0, 250.0))},
        "dB",
        decibel,
        "Express a linear power ratio of {ratio} in dB.",
        r"convert linear SNR={ratio} to dB",
    ),
    formula(
        "path_gain",
        {"loss": ("dB", (60.0, 75.0, 92.0, 105.0, 118.0))},
        "1",
        lambda loss: linear(-loss),
        "A path loses {loss}. What is its linear gain?",
        r"path gain \(linear\) for path loss {loss}",
    ),
    formula(
        "received_power",
        {"power": ("W", (0.2, 0.5, 2.0, 10.0)), "loss": ("dB", (70.0, 85.0, 100.0, 115.0))},
        "W",
        lambda power, loss: power * linear(-loss),
        "A transmitter sends {power} over a path that loses {loss}. Which power in W arrives?",
        r"loss L={loss}\. If transmit power is {power}, what received power",
        beside=("channel", "is obtained"),
    ),
    formula(
        "path_loss",
        {"sent": ("dBm", (13.0, 20.0, 26.0, 33.0)), "received": ("dBm", (-101.0, -94.0, -78.0, -65.0))},
        "dB",
        lambda sent, received: sent - received,
        "A transmitter sends {sent}; the receiver needs {received}. Which path loss in dB may lie between them?",
        r"required received power is {received} and transmitter power is {sent}, what maximum path loss",
        r"Pt={sent} and required received power is {received}\. Find allowable path loss",
        beside=("transmitter", "is allowed"),
    ),
    formula(
        "sensitivity",
        {"noise": ("dBm", (-118.0, -109.0, -104.0, -99.0)), "snr": _SNR_DB},
        "dBm",
        lambda noise, snr: noise + snr,
        "The noise at a receiver is {noise}, and it needs an SNR of {snr}. Which power in dBm must arrive?",
        r"noise power {noise} and required SNR {snr}, find required received power",
    ),
    formula(
        "signal_power",
        {"noise": ("W", (1e-9, 3e-7, 2e-5, 0.004)), "snr": _SNR_DB},
        "W",
        lambda noise, snr: noise * linear(snr),
        "The noise power is {noise}. Which signal power in W gives an SNR of {snr}?",
        r"received power for SNR={snr} in that band\. If N={noise}",
        beside=("Ps",),
    ),
    formula(
        "energy_power",
        {"energy": ("1 J", (2e-9, 5e-8, 4e-7)), "bit_rate": ("kbit/s", (10.0, 64.0, 250.0))},
        "W",
        lambda energy, bit_rate: energy * bit_rate * 1e3,
        "A receiver needs {energy} for each bit, at {bit_rate}. Which power in W must arrive?",
        r"required Eb={energy} and bit rate Rb={bit_rate}, find required received power",
        beside=("Pr",),
    ),
    formula(
        "bit_energy_power",
        {
            "density": ("1 W/Hz", (2e-20, 5e-20, 3e-19)),
            "ebn0": ("1", (4.0, 8.0, 12.0)),
            "bit_rate": ("Mbit/s", (1.0, 3.0, 8.0)),
        },
        "W",
        lambda density, ebn0, bit_rate: density * ebn0 * bit_rate * 1e6,
        "Noise of density {density} disturbs a link of {bit_rate} that needs a linear Eb/N0 of {ebn0}. Which power in "
        "W "
        "must arrive?",
        r"N0={density} and required Eb/N0={ebn0} \(linear\), bit rate Rb={bit_rate}\.",
        beside=("received power Pr=Eb Rb",),
    ),
    formula(
        "ebn0_of_power",
        {
            "power": ("W", (1e-9, 3e-8, 2e-7)),
            "bit_rate": ("kbit/s", (20.0, 80.0, 300.0)),
            "density": ("1 W/Hz", (1e-14, 4e-14)),
        },
        "1",
        lambda power, bit_rate, density: power / (bit_rate * 1e3 * density),
        "{power} arrive at {bit_rate} beside noise of density {density}. What is Eb/N0, as a linear ratio?",
        r"received power Pr={power}, bit rate Rb={bit_rate}, N0={density}\. Find Eb/N0",
        beside=("Eb/N0 for coherent BPSK",),
    ),
    formula(
        "ebn0_of_snr",
        {"bit_rate": ("bit/s", (300.0, 800.0, 1500.0)), "bandwidth": ("Hz", (2400.0, 3200.0, 4000.0)), "snr": _SNR_DB},
        "1",
        lambda bit_rate, bandwidth, snr: linear(snr) * bandwidth / bit_rate,
        "A modem sends {bit_rate} through a channel {bandwidth} wide at an SNR of {snr}. What is Eb/N0, as a linear "
        "ratio?",
        r"Bit rate Rb={bit_rate}, channel bandwidth B={bandwidth}, input SNR={snr}\. Compute Eb/N0",
        beside=("FSK modem Eb/N0 from SNR", r"=\(S/N\)\*\(B/Rb\)"),
    ),
    formula(
        "density_of_snr",
        {"power": _POWER_MW, "bandwidth": ("kHz", (50.0, 150.0, 400.0)), "snr": _SNR},
        "1 W/Hz",
        lambda power, bandwidth, snr: power * 1e-3 / (bandwidth * 1e3 * snr),
        "{power} arrive in {bandwidth} at a linear SNR of {snr}. What is the noise density N0 in W/Hz?",
        r"received power P={power}, bandwidth B={bandwidth}, and SNR=P/\(N0 B\)={snr}\. Find N0",
        r"input SNR is {snr} and received signal power is {power}, find noise PSD n0 assuming message bandwidth "
        r"{bandwidth}",
        beside=("AWGN channel", "SSB coherent demodulation", "Ni=n0 B"),
    ),
    formula(
        "noise_power",
        {"bandwidth": ("kHz", (2.0, 4.0, 7.0, 15.0)), "density": _DENSITY},
        "W",
        lambda bandwidth, density: bandwidth * 1e3 * density,
        "Which noise power in W does a filter {bandwidth} wide pass, of a one-sided density of {density}?",
        r"message bandwidth (?:is )?{bandwidth}(?:,| and) noise PSD (?:n0=|is ){density}\. Find .*noise power",
        beside=("SSB", "coherent demodulation", "input", "Ni"),
    ),
    formula(
        "noise_power_two_sided",
        {"density": _DENSITY, "bandwidth": ("kHz", (10.0, 30.0, 80.0))},
        "W",
        lambda density, bandwidth: 2.0 * density * bandwidth * 1e3,
        "Noise has a two-sided density of {density}. Which power in W passes a filter {bandwidth} wide on each side?",
        r"Two-sided PSD N0/2={density}, bandpass filter equivalent noise bandwidth B={bandwidth}\b.*total bandwidth 2B",
        beside=("noise power in band", "one-sided around carrier", "total noise power passed", "both sidebands"),
    ),
    formula(
        "snr_ssb",
        {"bandwidth": ("kHz", (2.0, 4.0, 5.0)), "density": _DENSITY, "power": _POWER_MW},
        "1",
        lambda bandwidth, density, power: power * 1e-3 / (density * bandwidth * 1e3),
        "An SSB signal of {power} with a message {bandwidth} wide arrives in noise of one-sided density {density}. "
        "What is "
        "the linear SNR at the demodulator's input?",
        r"message bandwidth is {bandwidth} and one-sided noise PSD is n0={density}\. If received signal power is "
        r"Si={power},",
        beside=("coherent demodulation of an SSB signal", "input SNR Si/Ni"),
    ),
    formula(
        "amplitude",
        {"power": ("W", (0.003, 0.02, 0.5, 8.0)), "resistance": ("1 Ω", (50.0, 75.0, 100.0, 300.0))},
        "1 V",
        lambda power, resistance: math.sqrt(2.0 * power * resistance),
        "A carrier dissipates {power} in {resistance}. What is its amplitude in V?",
        r"amplitude from power in {resistance}\. If carrier power is {power} ",
        Reading(r"1[ -]?Ω.*P=A\^2/2\. If P={power}, find amplitude", {"resistance": 1.0}),
        Reading(r"signal power S={power} to amplitude A \(1 Ω", {"resistance": 1.0}),
        Reading(r"Si={power} to amplitude A on 1 Ω", {"resistance": 1.0}),
        beside=(r"P=A\^2/\(2R\)", r"[PS]=A\^2/2", "power to carrier amplitude", "reference"),
    ),
    formula(
        "free_space_gain",
        {"frequency": _GHZ, "distance": ("m", (1.0, 10.0, 50.0, 100.0))},
        "1",
        _gain,
        "What is the free-space gain (λ/(4πd))² between isotropic antennas at {frequency}, {distance} apart?",
        r"d0={distance}\. For fc={frequency} compute K",
        r"d0={distance}, .*K=\(λ/\(4πd0\)\)\^2 at fc={frequency}\. Compute K",
        beside=("free-space constant", r"K=\(λ/\(4πd0\)\)\^2", "path loss model", "exponent γ=4"),
    ),
    formula(
        "free_space_power",
        {"frequency": _GHZ, "distance": ("m", (20.0, 80.0, 300.0)), "received": ("dBm", (-75.0, -68.0, -55.0))},
        "W",
        lambda frequency, distance, received: linear(received - 30.0) / _gain(frequency, distance),
        "Which power in W must an isotropic transmitter send at {frequency}, so that {received} arrive {distance} away "
        "in "
        "free space?",
        r"free-space path loss\. .*f={frequency}, d={distance}\. Required Pr={received}\. Find required transmit power",
        beside=("isotropic antennas", "Pt", r"Pr=Pt\(λ/\(4πd\)\)\^2"),
    ),
    formula(
        "single_slope",
        {
            "power": _POWER_MW,
            "gain": ("1", (2e-4, 4e-4, 8e-4)),
            "exponent": ("1", (2.5, 3.0, 3.5)),
            "reference": ("m", (1.0, 10.0)),
            "distance": ("m", (120.0, 200.0, 350.0)),
        },
        "W",
        lambda power, gain, exponent, reference, distance: power * 1e-3 * gain * (reference / distance) ** exponent,
        "{power} are sent; the gain is {gain} at {reference}, and falls with exponent {exponent}. Which power in W "
        "arrives "
        "{distance} away?",
        r"Pt={power}, K={gain}, γ={exponent}, d0={reference}\. Find Pr at d={distance}",
        beside=("single-slope path loss", r"Pr=Pt K \(d0/d\)\^γ"),
    ),
    formula(
        "critical_distance",
        {"height_sender": ("m", (12.0, 25.0, 35.0)), "height_receiver": ("m", (1.5, 3.0, 5.0)), "frequency": _GHZ},
        "m",
        lambda height_sender, height_receiver, frequency: (
            4.0 * height_sender * height_receiver * frequency * 1e9 / LIGHT_M_S
        ),
        "A two-ray channel at {frequency} has antennas {height_sender} and {height_receiver} high. What is the "
        "critical "
        "distance 4·ht·hr/λ in m?",
        r"ht={height_sender}, hr={height_receiver}, f={frequency}\. Compute dc",
        r"fc={frequency}, ht={height_sender}, hr={height_receiver}\. Compute dc",
        Reading(
            r"ht=hr={height_sender} at fc={frequency}, compute critical distance",
            {"height_receiver": "height_sender"},
        ),
        beside=("two-ray", "critical distance", "=4ht ?hr/λ", "dc"),
    ),
    formula(
        "two_ray_separation",
        {"height": ("m", (4.0, 6.0, 12.0, 20.0)), "delay": ("ns", (4.0, 10.0, 15.0, 30.0))},
        "m",
        lambda height, delay: 2.0 * height**2 / (LIGHT_M_S * delay * 1e-9),
        "Both antennas of a two-ray channel are {height} high; the second ray is late by {delay}. How far apart are "
        "they, "
        "in m, by Δτ ≈ 2h²/(cd)?",
        r"two-ray.*h(?:t=hr)?={height}(?: and|,) excess delay Δτ={delay}\. .*separation",
        beside=("900 MHz", "channel", "TX-RX", "d", "meters", r"Δτ≈2h\^2/\(cd\)", r"d≈2h\^2/\(cΔτ\)"),
    ),
    formula(
        "round_trip",
        {"distance": ("km", (150.0, 600.0, 900.0, 2000.0, 8000.0))},
        "ms",
        lambda distance: 2.0 * distance * 1e6 / LIGHT_M_S,
        "A satellite is {distance} away. How long does a signal take there and back, in ms?",
        Reading(
            r"RTT for LEO altitude {=altitude} km with c=3e8 m/s\. Use one-way distance {distance}",
            implied={"altitude": lambda p: p["distance"]},
        ),
    ),
    formula(
        "doppler",
        {"frequency": _GHZ, "speed": ("1 m/s", (3.0, 12.0, 25.0, 40.0)), "angle": ("deg", (20.0, 45.0, 60.0))},
        "Hz",
        lambda frequency, speed, angle: frequency * 1e9 * speed * math.cos(math.radians(angle)) / LIGHT_M_S,
        "A receiver moves at {speed}, {angle} off the direction of a carrier of {frequency}. What is the Doppler shift "
        "in Hz?",
        r"doppler shift\. fc={frequency}, v={speed}, θ={angle}\.",
        Reading(r"doppler shift\. fc={frequency}, v={speed}, θ=0°\. Compute fD=v/λ", {"angle": 0.0}),
        beside=("fD=v cosθ/λ",),
    ),
    formula(
        "outage",
        {"mean": ("dBm", (-71.0, -66.0, -62.0)), "shadowing": _SHADOW, "threshold": ("dBm", (-85.0, -80.0, -77.0))},
        "1",
        lambda mean, shadowing, threshold: tail((mean - threshold) / shadowing),
        "The mean received power is {mean}, log-normal shadowing has σ = {shadowing}, and {threshold} are needed. How "
        "probable is an outage?",
        r"log-normal shadowing with μ= ?{mean} and σ={shadowing}\. Find outage probability for threshold {threshold}",
        r"σ={shadowing}, outage threshold {threshold}, mean received power {mean}\. Compute outage probability",
        r"mean μ={mean}, σ={shadowing}, threshold {threshold}\. Compute outage probability",
        beside=("log-normal (?:shadowing|outage)",),
    ),
    formula(
        "outage_mean",
        {"threshold": ("dBm", (-95.0, -82.0, -70.0)), "shadowing": _SHADOW, "outage": ("1", (0.02, 0.05, 0.1, 0.2))},
        "dBm",
        lambda threshold, shadowing, outage: threshold + shadowing * tail_inverse(outage),
        "{threshold} are needed under log-normal shadowing of σ = {shadowing}. Which mean power in dBm keeps the "
        "outage "
        "probability at {outage}?",
        r"outage {outage}\. Threshold {threshold}, σ={shadowing}\b",
        Reading(
            r"for {outage} outage\. Threshold {threshold}, σ={shadowing}\b(?:(?:,|\. Find μ for) Pout={=same})?",
            implied={"same": lambda p: p["outage"]},
        ),
        r"σ={shadowing}\. Required threshold is {threshold}\. Find mean μ needed for outage {outage}",
        beside=("(?:minimum )?mean (?:received )?power", "log-normal shadowing", "μ"),
    ),
    formula(
        "shadowing_margin",
        {"shadowing": _SHADOW, "quantile": ("1", (1.28, 1.65, 2.05, 2.33))},
        "dB",
        lambda shadowing, quantile: quantile * shadowing,
        "Shadowing has σ = {shadowing}; the wanted reliability lies {quantile} standard deviations out. Which margin "
        "in dB "
        "does it need?",
        Reading(
            r"σ={shadowing}, reliability {=reliability}%, so margin M={quantile}σ",
            implied={"reliability": lambda p: 100.0 * (1.0 - tail(p["quantile"]))},
        ),
        beside=(r"free-space \+ shadowing", "margin M"),
    ),
    formula(
        "clipping_amplitude",
        {"probability": ("1", (0.002, 0.004, 0.03, 0.08))},
        "1",
        lambda probability: math.sqrt(-math.log(probability)),
        "An OFDM envelope exceeds A0 with probability exp(−A0²). Which A0 is exceeded with probability {probability}?",
        r"(?:Pr\(r>A0\)=)?exp\(-A0\^2\).*A0 for (?:clipping probability|Pr=) ?{probability}",
        Reading(
            r"Pr={probability}\. Find A0 from exp\(-A0\^2\)={=same}",
            implied={"same": lambda p: p["probability"]},
        ),
        r"exp\(-A0\^2\): If clipping probability is {probability}, find A0",
        beside=("OFDM", "Rayleigh", "clipping", "model"),
    ),
    formula(
        "clipping_probability",
        {"amplitude": ("1", (1.2, 1.5, 1.8, 2.2, 2.5))},
        "1",
        lambda amplitude: math.exp(-(amplitude**2)),
        "An OFDM envelope exceeds A0 with probability exp(−A0²). How probable is clipping at A0 = {amplitude}?",
        r"find clipping probability when A0={amplitude}\b",
        beside=(r"OFDM with Pr\(r>A0\)=exp\(-A0\^2\)",),
    ),
    formula(
        "fade_depth",
        {"mean": ("dBm", (-70.0, -64.0, -55.0)), "threshold": ("dBm", (-88.0, -80.0, -73.0))},
        "1",
        lambda mean, threshold: math.sqrt(linear(threshold - mean)),
        "The average received power is {mean}, the threshold {threshold}. What is ρ, the root of their ratio?",
        r"average received power {mean} and threshold {threshold}, compute ρ",
        beside=(r"=sqrt\(P0/Pr\)",),
    ),
    formula(
        "fade_duration",
        {"depth": ("1", (0.1, 0.25, 0.5, 0.7)), "doppler": ("Hz", (20.0, 60.0, 90.0, 150.0))},
        "s",
        lambda depth, doppler: (math.exp(depth**2) - 1.0) / (math.sqrt(2.0 * math.pi) * doppler * depth),
        "A Rayleigh channel with a Doppler spread of {doppler} fades below ρ = {depth} of its level. How long does a "
        "fade "
        "last on average, in s?",
        r"average fade duration: .*For ρ={depth} and fD={doppler}, compute",
        beside=(r"T̄=\(e\^ρ\^2-1\)/\(sqrt\(2π\) fD ρ\)", "T̄"),
    ),
    formula(
        "jakes_argument",
        {"doppler": ("Hz", (30.0, 70.0, 110.0)), "lag": ("ms", (0.2, 0.8, 1.5, 4.0))},
        "1",
        lambda doppler, lag: 2.0 * math.pi * doppler * lag * 1e-3,
        "What is the argument 2π·fD·Δt of Jakes' correlation for a Doppler spread of {doppler} and a lag of {lag}?",
        r"jakes\. fD={doppler}, Δt={lag}\. Compute x",
        beside=("correlation coefficient", "=2π fD Δt"),
    ),
    formula(
        "water_filling_cutoff",
        {
            "state_one": ("1", (12.0, 8.0)),
            "state_two": ("1", (4.0, 3.0)),
            "state_three": ("1", (1.5, 2.0)),
            "share_one": ("1", (0.2,)),
            "share_two": ("1", (0.3,)),
            "share_three": ("1", (0.5,)),
        },
        "1",
        lambda state_one, state_two, state_three, share_one, share_two, share_three: (
            (share_one + share_two + share_three)
            / (1.0 + share_one / state_one + share_two / state_two + share_three / state_three)
        ),
        "A channel's states γ = {state_one}, {state_two}, {state_three} have probabilities {share_one}, {share_two}, "
        "{share_three}; all are used. What is the cutoff γ0 of water filling, 1/γ0 = 1 + Σ p/γ?",
        r"water-filling cutoff\. Active states γ={state_one}, ?{state_two}, ?{state_three} with probabilities "
        r"p={share_one}, ?{share_two}, ?{share_three}\.",
        beside=(r"ptotal/γ0 = 1 \+ Σ pi/γi", "γ0"),
    ),
    formula(
        "radiation_efficiency",
        {"radiation": ("1 Ω", (4.0, 20.0, 36.0, 73.0)), "loss": ("1 Ω", (1.0, 6.0, 10.0))},
        "%",
        lambda radiation, loss: 100.0 * radiation / (radiation + loss),
        "An antenna has a radiation resistance of {radiation} and a loss resistance of {loss}. What is its efficiency "
        "in %?",
        r"an antenna has radiation resistance Rrad={radiation} and ohmic loss Rohmic={loss}\.",
        beside=("radiation efficiency",),
    ),
    formula(
        "intercept_input",
        {"level": ("dBm", (-20.0, -14.0, -8.0)), "wanted": ("dBm", (4.0, 12.0)), "third": ("dBm", (-40.0, -31.0))},
        "dBm",
        lambda level, wanted, third: level + (wanted - third) / 2.0,
        "Two tones of {level} into an amplifier give {wanted} each, and third-order products of {third}. What is the "
        "input "
        "intercept point IIP3 in dBm?",
        r"at input {level},? desired output (?:is )?{wanted} and IM3 (?:output |is ){third}[.,].*(?:Estimate IIP3|find "
        r"input where IM3 equals)",
        Reading(
            r"If IM3 equals desired at output {=crossing} dBm, what is the input third-order intercept \(IIP3\) "
            r"approximately, given 2-tone test at {level} input produced Δ={=gap} dB between desired \({wanted}\) and "
            r"IM3 \({third}\)",
            implied={
                "crossing": lambda p: p["wanted"] + (p["wanted"] - p["third"]) / 2.0,
                "gap": lambda p: p["wanted"] - p["third"],
            },
        ),
        beside=(
            "cubic amplifier",
            "two-tone test",
            "desired tone output changes 1 dB per 1 dB input, IM3 changes 3 dB per 1 dB input",
            "desired",
        ),
    ),
    formula(
        "intercept_output",
        {"intercept": ("dBm", (-6.0, 2.0, 7.0, 15.0)), "gain": ("dB", (12.0, 18.0, 22.0, 30.0))},
        "dBm",
        lambda intercept, gain: intercept + gain,
        "An amplifier has IIP3 = {intercept} and a gain of {gain}. What is its output intercept point OIP3 in dBm?",
        r"IIP3={intercept} and small-signal gain is {gain}, estimate OIP3",
    ),
    formula(
        "attenuation",
        {"slope": ("1 dB/km", (0.2, 0.35, 2.0, 6.0)), "distance": ("km", (3.0, 12.0, 25.0, 40.0))},
        "dB",
        lambda slope, distance: slope * distance,
        "A cable loses {slope}. How many dB does it lose over {distance}?",
        r"attenuation is {slope} over {distance}\.",
        beside=("total attenuation", "total dB loss"),
    ),
    formula(
        "centre_frequency",
        {"low": ("MHz", (88.0, 410.0, 880.0)), "high": ("MHz", (912.0, 930.0, 960.0))},
        "MHz",
        lambda low, high: (low + high) / 2.0,
        "A band reaches from {low} to {high}. Where is its centre, in MHz?",
        r"(?:band|allocation)(?: is)? {low:high} ?[–-] ?{high}[.,].*(?:center|carrier) frequency"
        r"(?:(?: if)? centered in the band)?",
        r"(?:carrier|center) frequency for (?:allocation|allocated band) {low:high} ?[–-] ?{high}\.",
        beside=("allocated", "channel", "select"),
    ),
    formula(
        "users_cdma",
        {
            "spreading": ("count", (16.0, 32.0, 128.0)),
            "antennas": ("count", (1.0, 2.0, 8.0)),
            "sir": ("dB", (5.0, 6.0, 7.0)),
        },
        "1",
        lambda spreading, antennas, sir: spreading * antennas / linear(sir),
        "A CDMA cell spreads by {spreading} and has {antennas} ideal antennas; an SIR of {sir} is needed. Estimate its "
        "users "
        "by spreading · antennas / SIR.",
        r"CDMA capacity\. Spreading factor Mc={spreading}, SIR threshold {sir}, Nr={antennas} ideal antennas",
        beside=("users N≈Mc Nr/γth",),
    ),
    formula(
        "cell_area",
        {
            "area": ("1 km^2", (80.0, 150.0, 300.0)),
            "users_cell": ("count", (60.0, 120.0, 240.0)),
            "users": ("count", (20000.0, 50000.0)),
        },
        "1 km^2",
        lambda area, users_cell, users: area * users_cell / users,
        "A city of {area} has {users} users; a cell can serve {users_cell}. Which area in km² may a cell have?",
        r"city area {area} and {users_cell} users per cell, .*support {users} users",
        beside=("cell area",),
    ),
)
