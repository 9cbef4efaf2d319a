"""Formula tools of detection: error probabilities, what they need, and thresholds (Proakis, Digital Communications)."""

from __future__ import annotations

import math
from typing import Final

from simulators.optbench.base.formula import Formula, Reading, decibel, formula, linear, tail, tail_inverse

_DB: Final = ("dB", (1.0, 2.5, 4.0, 5.5, 7.0, 8.5, 9.0, 10.5))
_RATIO: Final = ("1", (2.0, 3.5, 5.0, 6.5, 8.0, 9.5, 11.0, 13.0))
_BER: Final = ("1", (0.02, 0.005, 0.002, 0.0004, 0.00003, 0.000007, 0.0000005))
_EBN0: Final = r"Eb/N0 ?= ?{ebn0}"
_NONCOHERENT: Final = r"noncoherent (?:orthogonal )?2?B?FSK\b"

DETECTION: Final[tuple[Formula, ...]] = (
    formula(
        "ber_bpsk",
        {"ebn0": _DB},
        "1",
        lambda ebn0: tail(math.sqrt(2.0 * linear(ebn0))),
        "Coherent BPSK over an AWGN channel runs at Eb/N0 of {ebn0}. What is its bit error probability?",
        rf"coherent BPSK over AWGN\. Given {_EBN0}, estimate",
        rf"BER for coherent BPSK at {_EBN0}",
    ),
    formula(
        "ber_antipodal",
        {"snr": _RATIO},
        "1",
        lambda snr: tail(math.sqrt(2.0 * snr)),
        "Antipodal signals reach the detector at a linear Eb/N0 of {snr}. What is the bit error probability?",
        r"Pb=Q\(sqrt2S/N\)\. If S/N={snr}",
        r"Pb=Q\(sqrt2Eb/N0\)\. If Eb/N0={snr}",
    ),
    formula(
        "ebn0_antipodal",
        {"ber": _BER},
        "dB",
        lambda ber: decibel(tail_inverse(ber) ** 2 / 2.0),
        "Which Eb/N0 in dB does coherent BPSK or Gray-coded QPSK need for a bit error probability of {ber}?",
        r"coherent BPSK over AWGN\. Find the minimum Eb/N0 .*Pb ?= ?{ber}",
        r"for (?:coherent )?BPSK, (?:required|if) Pb={ber}[.,]",
        r"Gray-coded QPSK (?:required|over AWGN).*BER Pb={ber}[.,]",
        r"BER requirement is {ber} and Pb=Q\(sqrt2Eb/N0\)",
    ),
    formula(
        "ber_on_off",
        {"snr": _RATIO},
        "1",
        lambda snr: tail(math.sqrt(snr)),
        "Coherent on-off keying is received at a linear Eb/N0 of {snr}. What is the bit error probability Q(√(Eb/N0))?",
        r"(?:OOK|2ASK) .*Eb/N0 ?= ?{snr} \(linear\) and Pb=Q\(sqrtEb/N0\)",
        r"Pb=Q\(sqrtEb/N0\) at Eb/N0={snr}",
        r"unipolar NRZ system.*Pb=Q\(sqrtS/N\) with received S/N={snr}",
        r"unipolar NRZ system has S/N={snr}\. Compute Pb",
    ),
    formula(
        "ber_on_off_db",
        {"ebn0": _DB},
        "1",
        lambda ebn0: tail(math.sqrt(linear(ebn0))),
        "Coherent on-off keying with equal priors is received at Eb/N0 of {ebn0}. What is its bit error probability?",
        rf"coherent OOK .*If {_EBN0} and Pb=Q\(sqrtEb/N0\)",
        rf"coherent orthogonal B?FSK at {_EBN0}",
    ),
    formula(
        "ebn0_on_off",
        {"ber": _BER},
        "dB",
        lambda ber: decibel(tail_inverse(ber) ** 2),
        "Which Eb/N0 in dB does coherent on-off keying need for a bit error probability of {ber}?",
        r"OOK (?:coherent )?inversion\..*Pb=Q\(sqrtEb/N0\).*for Pb={ber}",
        r"OOK inversion\..* Pb={ber}, find required Eb/N0",
    ),
    formula(
        "snr_unipolar",
        {"ber": _BER},
        "1",
        lambda ber: tail_inverse(ber) ** 2,
        "Which linear S/N does a unipolar NRZ receiver need for a bit error probability of {ber}?",
        r"unipolar NRZ system, require Pb ≤ {ber}\.",
    ),
    formula(
        "ebn0_qpsk_union",
        {"bound": _BER},
        "dB",
        lambda bound: decibel(tail_inverse(bound) ** 2 / 4.0),
        "At which Eb/N0 in dB does the union bound term Q(√(4·Eb/N0)) of QPSK equal {bound}?",
        r"Q\(sqrt4Eb/N0\)<{bound}\.",
    ),
    formula(
        "ber_dbpsk",
        {"ebn0": _DB},
        "1",
        lambda ebn0: 0.5 * math.exp(-linear(ebn0)),
        "DBPSK over an AWGN channel runs at Eb/N0 of {ebn0}. What is its bit error probability?",
        rf"DBPSK over AWGN\. {_EBN0}",
    ),
    formula(
        "ebn0_dbpsk",
        {"ber": _BER},
        "dB",
        lambda ber: decibel(-math.log(2.0 * ber)),
        "Which Eb/N0 in dB does DBPSK need for a bit error probability of {ber}?",
        r"DBPSK over AWGN\. Find required Eb/N0 .*Pb={ber}",
    ),
    formula(
        "power_dbpsk",
        {
            "ber": _BER,
            "bit_rate": ("Mbit/s", (0.5, 1.0, 2.5, 4.0)),
            "density": ("1 W/Hz", (1e-20, 4e-20, 3e-19, 5e-18)),
        },
        "W",
        lambda ber, bit_rate, density: -math.log(2.0 * ber) * density * bit_rate * 1e6,
        "DBPSK at {bit_rate} meets noise of density {density}. Which received power in W gives a bit error probability "
        "of {ber}?",
        r"received power for DBPSK\. Target BER={ber}, bit rate Rb={bit_rate}.*N0={density}",
        r"received power needed for DBPSK BER {ber} at Rb={bit_rate} with N0={density}",
    ),
    formula(
        "ber_fsk_noncoherent",
        {"ebn0": _DB},
        "1",
        lambda ebn0: 0.5 * math.exp(-linear(ebn0) / 2.0),
        "Noncoherent orthogonal 2FSK is received at Eb/N0 of {ebn0}. What is its bit error probability?",
        rf"{_NONCOHERENT}.*Given {_EBN0}, estimate",
        rf"{_NONCOHERENT} at {_EBN0}",
    ),
    formula(
        "ebn0_fsk_noncoherent",
        {"ber": _BER},
        "dB",
        lambda ber: decibel(-2.0 * math.log(2.0 * ber)),
        "Which Eb/N0 in dB does noncoherent orthogonal 2FSK need for a bit error probability of {ber}?",
        rf"{_NONCOHERENT}\. Target BER {{ber}}\.",
        rf"{_NONCOHERENT} required.* for Pb={{ber}}",
    ),
    formula(
        "ber_16qam",
        {"ebn0": _DB},
        "1",
        lambda ebn0: 0.75 * tail(math.sqrt(0.8 * linear(ebn0))),
        "Estimate the bit error probability of Gray-coded 16-QAM at Eb/N0 of {ebn0}, as (3/4)·Q(√((4/5)·Eb/N0)).",
        rf"16-QAM .*\(3/4\)Q\(sqrt.*for {_EBN0}",
    ),
    formula(
        "ebn0_16qam",
        {"ber": _BER},
        "dB",
        lambda ber: decibel(tail_inverse(ber / 0.75) ** 2 / 0.8),
        "Which Eb/N0 in dB gives Gray-coded 16-QAM a bit error probability of {ber}, taken as (3/4)·Q(√((4/5)·Eb/N0))?",
        r"16-QAM,? (?:union-bound inversion|require).*?pb ?[=≈] ?{ber}\b.*\(3/4\)Q\(sqrt",
    ),
    formula(
        "ber_8psk",
        {"ebn0": _DB},
        "1",
        lambda ebn0: 2.0 / 3.0 * tail(math.sqrt(6.0 * linear(ebn0)) * math.sin(math.pi / 8.0)),
        "Estimate the bit error probability of 8PSK at Eb/N0 of {ebn0}, as (2/3)·Q(√(6·Eb/N0)·sin(π/8)).",
        rf"8PSK nearest-neighbor.*For {_EBN0}",
    ),
    formula(
        "tail_near_zero",
        {"argument": ("1", (0.01, 0.03, 0.05, 0.08, 0.12))},
        "1",
        lambda argument: 0.5 - argument / math.sqrt(2.0 * math.pi),
        "Approximate Q(x) ≈ 0.5 − x/√(2π) at x = {argument}.",
        r"sqrtEb/N0={argument}, approximate BER using Q\(x\)≈0\.5-x/sqrt2pi",
    ),
    formula(
        "argument_near_zero",
        {"ber": ("1", (0.42, 0.44, 0.46, 0.47, 0.49))},
        "1",
        lambda ber: (0.5 - ber) * math.sqrt(2.0 * math.pi),
        "A detector errs with probability {ber}. Using Q(x) ≈ 0.5 − x/√(2π), what is x?",
        r"measured BER is {ber}\. Using small-x",
    ),
    formula(
        "threshold_on_off",
        {"amplitude": ("1 V", (0.1, 0.3, 0.6, 1.4, 2.4))},
        "1 V",
        lambda amplitude: amplitude / 2.0,
        "Coherent on-off keying with equal priors has levels 0 and {amplitude}. Where is the best threshold, in V?",
        r"coherent OOK threshold for equal priors when A={amplitude}",
    ),
    formula(
        "threshold_map",
        {
            "amplitude": ("1", (0.5, 1.0, 1.5, 2.0)),
            "density": ("1", (0.1, 0.2, 0.4)),
            "prior": ("1", (0.1, 0.3, 0.4, 0.6, 0.7)),
        },
        "1",
        lambda amplitude, density, prior: (
            amplitude / 2.0 + density / (2.0 * amplitude) * math.log((1.0 - prior) / prior)
        ),
        "Of the levels 0 and A = {amplitude}, the second is sent with probability {prior}, and N0 = {density}. Where "
        "is the "
        "MAP threshold, A/2 + N0/(2A)·ln(P(0)/P(A))?",
        r"A={amplitude}, N0={density}, P1=[\d.]+, P2={prior}, compute VT",
        Reading(r"VT=A/2.* If A={amplitude}, N0={density}, P1=P2, compute VT", {"prior": 0.5}),
        r"P\(A\)={prior}, P\(0\)=[\d.]+ ?\. Given A={amplitude} and N0={density}, compute VT",
    ),
    formula(
        "ber_laplacian",
        {"amplitude": ("1", (1.0, 2.5, 3.0, 4.0)), "scale": ("1", (0.3, 0.4, 0.6, 0.8))},
        "1",
        lambda amplitude, scale: 0.5 * math.exp(-amplitude / (2.0 * scale)),
        "Levels 0 and A = {amplitude} are received in Laplacian noise of parameter λ = {scale}. What is the error "
        "probability 0.5·exp(−A/(2λ))?",
        r"Laplacian-noise.*A={amplitude} and λ={scale}, compute",
    ),
    formula(
        "phase_penalty",
        {"offset": ("deg", (10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0))},
        "dB",
        lambda offset: -20.0 * math.log10(math.cos(math.radians(offset))),
        "A coherent BPSK receiver's carrier is off by {offset}. Which penalty in dB does this cost?",
        r"phase offset φ={offset}\..*penalty",
    ),
    formula(
        "timing_error",
        {"factor": ("1", (0.5, 1.0, 2.0, 4.0)), "ebn0": ("dB", (6.0, 8.0, 11.0, 14.0))},
        "1",
        lambda factor, ebn0: 0.33 / math.sqrt(10.0 * factor * linear(ebn0)),
        "A symbol synchroniser with K = {factor} runs at Eb/N0 of {ebn0}. Compute |ε|/T = 0.33/√(10K·Eb/N0).",
        rf"0\.33/.*For K={{factor}} and {_EBN0}, compute",
        rf"Given K={{factor}} and {_EBN0}, compute",
    ),
    formula(
        "sync_miss",
        {"length": ("1", (16.0, 24.0, 32.0, 48.0)), "ber": ("1", (0.0002, 0.0005, 0.001, 0.004))},
        "1",
        lambda length, ber: 1.0 - (1.0 - ber) ** length,
        "A sync word of {length} bits must arrive without an error; the channel's bit error probability is {ber}. How "
        "probable is a miss?",
        r"\(n={length}\) with channel BER p={ber} and m=0, compute miss",
    ),
    formula(
        "sync_miss_one",
        {"length": ("1", (16.0, 24.0, 32.0, 48.0)), "ber": ("1", (0.0002, 0.0005, 0.00001))},
        "1",
        lambda length, ber: length * (length - 1.0) / 2.0 * ber**2,
        "A sync word of {length} bits may arrive with one error; the channel's bit error probability is {ber}. "
        "Approximate the miss probability by C(n,2)·p².",
        r"\(m=1\)\. Sync length n={length}, channel BER p={ber}\.",
    ),
    formula(
        "sync_false_one",
        {"length": ("1", (16.0, 20.0, 24.0, 32.0, 36.0))},
        "1",
        lambda length: (1.0 + length) * 2.0**-length,
        "A sync word of {length} bits may differ in one bit. How probable is it in random bits, (1+n)·2^(−n)?",
        r"using n={length} and allowing up to 1 mismatch",
    ),
    formula(
        "sync_length",
        {"bit_rate": ("bit/s", (100.0, 300.0, 700.0, 1500.0)), "period": ("s", (600.0, 3600.0, 86400.0))},
        "1",
        lambda bit_rate, period: float(math.ceil(math.log2(bit_rate * period))),
        "Random bits arrive at {bit_rate}. How many bits must a sync word have at least to be found falsely at most "
        "once in {period}?",
        Reading(r"Bit rate R={bit_rate},.*once per month \(30 days\)", {"period": 2592000.0}),
        Reading(r"once per day\. Bit rate R={bit_rate},", {"period": 86400.0}),
    ),
)
