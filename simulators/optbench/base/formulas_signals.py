"""Formula tools of signals: pulse shaping, analogue and digital modulation, PCM, sequences, codes and sources."""

from __future__ import annotations

import math
from typing import Final

from simulators.optbench.base.formula import Formula, Reading, decibel, formula, linear

_ROLL_OFF: Final = ("1", (0.2, 0.22, 0.35, 0.45, 0.6, 0.8))
_KBIT: Final = ("kbit/s", (32.0, 64.0, 80.0, 150.0, 320.0, 512.0))
_KHZ: Final = ("kHz", (4.0, 12.0, 30.0, 48.0, 75.0, 200.0))
_ORDER: Final = ("count", (4.0, 8.0, 32.0, 64.0, 256.0))
_AUDIO: Final = ("kHz", (2.0, 3.4, 5.0, 8.0, 15.0))
_BITS: Final = ("count", (6.0, 8.0, 10.0, 12.0, 14.0, 16.0))
_LEVELS: Final = ("count", (8.0, 16.0, 128.0, 256.0, 2048.0))
_DEPTH: Final = ("1", (0.3, 0.4, 0.7, 0.9, 1.0))
_DEVIATION: Final = ("kHz", (6.0, 18.0, 40.0, 60.0))
_DENSITY: Final = ("1 W/Hz", (1e-11, 5e-11, 3e-10, 2e-9))
_ALPHA: Final = r"(?:α|roll-off α) ?= ?{roll_off}"


def _fm_input_w(snr_db: float, density: float, message_khz: float, deviation_khz: float) -> float:
    """Input power of an FM discriminator with gain 3β²(1+β) in Carson's bandwidth."""
    index = deviation_khz / message_khz
    return linear(snr_db) * density * 2e3 * (deviation_khz + message_khz) / (3.0 * index**2 * (1.0 + index))


def _am_input_w(snr_db: float, density: float, message_khz: float, efficiency: float) -> float:
    """Input power of a synchronous AM demodulator; its gain is twice the efficiency."""
    squared = 2.0 * efficiency / (1.0 - efficiency)
    return linear(snr_db) * density * 2e3 * message_khz * (2.0 + squared) / (2.0 * squared)


def _entropy(*probabilities: float) -> float:
    return -sum(p * math.log2(p) for p in probabilities)


def _order(bits_per_symbol: float) -> float:
    """The least power of two that carries so many bits a symbol; a ten-billionth over a whole number is rounding."""
    return 2.0 ** math.ceil(bits_per_symbol - 1e-10)


SIGNALS: Final[tuple[Formula, ...]] = (
    formula(
        "raised_cosine_bandwidth",
        {"bit_rate": _KBIT, "roll_off": _ROLL_OFF},
        "kHz",
        lambda bit_rate, roll_off: bit_rate * (1.0 + roll_off) / 2.0,
        "Binary pulses at {bit_rate} are shaped by a raised cosine of roll-off {roll_off}. Which baseband bandwidth in "
        "kHz "
        "do they take?",
        r"Rb={bit_rate} (?:uses raised-cosine|and) roll-off α={roll_off}[.,]? ?(?:Find|find) (?:required |minimum "
        r")+baseband bandwidth",
        beside=("binary (?:data|stream)", "raised-cosine (?:bandwidth|pulse shaping)", "B", "zero-ISI"),
    ),
    formula(
        "binary_rate",
        {"bandwidth": _KHZ, "roll_off": _ROLL_OFF},
        "kbit/s",
        lambda bandwidth, roll_off: 2.0 * bandwidth / (1.0 + roll_off),
        "Which binary rate in kbit/s fits into a baseband {bandwidth} wide with raised cosine shaping of roll-off "
        "{roll_off}?",
        rf"B={{bandwidth}} and {_ALPHA} for binary raised cosine, find Rb",
        rf"binary raised-cosine link fits into B={{bandwidth}} with {_ALPHA}\.",
        beside=("bandwidth", "max(?:imum)? bit rate"),
    ),
    formula(
        "qpsk_rate",
        {"bandwidth": _KHZ, "roll_off": _ROLL_OFF},
        "kbit/s",
        lambda bandwidth, roll_off: 4.0 * bandwidth / (1.0 + roll_off),
        "Which QPSK rate in kbit/s fits into a baseband {bandwidth} wide with raised cosine shaping of roll-off "
        "{roll_off}?",
        rf"RC shaping with {_ALPHA} and bandwidth {{bandwidth}}, find max QPSK",
        r"QPSK .*raised-cosine (?:with |roll-off )+α={roll_off} (?:and )?must fit (?:within )?B={bandwidth}",
        rf"QPSK RC system has B={{bandwidth}} and {_ALPHA}\. Find max bit rate",
        rf"QPSK system must fit into B={{bandwidth}} with {_ALPHA}\. Find maximum bit rate",
        rf"baseband B={{bandwidth}} and {_ALPHA}, find maximum QPSK",
        beside=(
            "(?:max(?:imum)? )?bit rate",
            "baseband",
            "raised-cosine shaped",
            "QPSK in same bandwidth",
            r"B=\(1\+α\)Rs/2, Rb=2Rs",
        ),
    ),
    formula(
        "qpsk_rate_passband",
        {"roll_off": _ROLL_OFF, "bandwidth": ("kHz", (2.4, 3.0, 6.0, 25.0))},
        "kbit/s",
        lambda roll_off, bandwidth: 2.0 * bandwidth / (1.0 + roll_off),
        "Which QPSK rate in kbit/s fits into an RF band {bandwidth} wide with root raised cosine shaping of roll-off "
        "{roll_off}?",
        rf"QPSK with RRC {_ALPHA}, available RF bandwidth is {{bandwidth}}\.",
        beside=("telephone band 300–3400 Hz", r"maximum bit rate fits \(ignore guard bands\)"),
    ),
    formula(
        "qpsk_roll_off",
        {"bit_rate": ("bit/s", (3600.0, 4200.0, 4400.0)), "bandwidth": ("Hz", (2600.0, 3000.0, 3400.0))},
        "1",
        lambda bit_rate, bandwidth: bandwidth / (bit_rate / 2.0) - 1.0,
        "QPSK carries {bit_rate} through a band {bandwidth} wide. Which roll-off of a raised cosine fits at most?",
    ),
    formula(
        "symbol_rate_of_bandwidth",
        {"bandwidth": ("MHz", (0.6, 2.0, 5.0, 7.5)), "roll_off": _ROLL_OFF},
        "1 baud",
        lambda bandwidth, roll_off: bandwidth * 1e6 / (1.0 + roll_off),
        "Which symbol rate in baud fits into an RF band {bandwidth} wide with roll-off {roll_off}?",
        rf"RF bandwidth B={{bandwidth}} and {_ALPHA} .*B=\(1\+α\)Rs, find Rs",
        beside=("symbol rate from bandwidth", "QPSK"),
    ),
    formula(
        "symbol_rate",
        {"order": _ORDER, "bit_rate": ("Mbit/s", (0.24, 1.2, 4.8, 24.0))},
        "1 baud",
        lambda order, bit_rate: bit_rate * 1e6 / math.log2(order),
        "A modulation of order {order} carries {bit_rate}. What is its symbol rate in baud?",
        r"bit rate for {order}PSK\. If Rb={bit_rate}, find Rs",
        Reading(r"QPSK system transmits Rb={bit_rate}\. Find symbol rate", {"order": 4.0}),
        beside=("symbol rate from", "Rs"),
    ),
    formula(
        "nyquist_rate",
        {"bandwidth": _KHZ},
        "kbit/s",
        lambda bandwidth: 2.0 * bandwidth,
        "Which binary rate in kbit/s does an ideal low-pass channel {bandwidth} wide carry at most without "
        "interference?",
        r"cutoff B={bandwidth}, binary PAM with ideal Nyquist signaling\. Find maximum bit rate",
        beside=("Nyquist maximum bit rate", "lowpass channel"),
    ),
    formula(
        "nrz_bandwidth",
        {"bit_rate": _KBIT},
        "kHz",
        lambda bit_rate: bit_rate,
        "Where is the first null in kHz of the spectrum of NRZ pulses at {bit_rate}?",
        r"NRZ first-null bandwidth for Rb={bit_rate}\b",
        r"NRZ.*bit rate Rb={bit_rate}, what is first-null bandwidth",
        r"bit rate Rb={bit_rate} with NRZ pulses, what is first-null bandwidth",
        r"NRZ bandwidth for Rb={bit_rate} \(first null\)",
        r"{bit_rate} stream with NRZ, what is first-null bandwidth",
        beside=(
            "minimum baseband bandwidth for binary",
            "rectangular pulses",
            "B",
            "NRZ first-null bandwidth",
            "multiplexed line",
        ),
    ),
    formula(
        "fsk_spacing",
        {"bit_rate": ("bit/s", (300.0, 500.0, 2400.0, 9600.0))},
        "Hz",
        lambda bit_rate: bit_rate / 2.0,
        "How far apart in Hz must two coherent FSK tones be at least to be orthogonal at {bit_rate}?",
        r"orthogonal Δf for Rb={bit_rate}\.",
    ),
    formula(
        "shaped_efficiency_binary",
        {"roll_off": _ROLL_OFF},
        "1 bit/s/Hz",
        lambda roll_off: 2.0 / (1.0 + roll_off),
        "What is the spectral efficiency 2/(1+α) in bit/s/Hz at roll-off {roll_off}?",
        rf"(?:efficiency|signaling) .*{_ALPHA}\. (?:Compute|Using) η=2/\(1\+α\)",
        rf"raised-cosine shaping with {_ALPHA} has spectral efficiency ηb=2/\(1\+α\)",
        beside=("(?:QPSK )?spectral", "binary", "RC", "signaling", "roll-off", "ηb?"),
    ),
    formula(
        "shaped_efficiency",
        {"order": _ORDER, "roll_off": _ROLL_OFF},
        "1 bit/s/Hz",
        lambda order, roll_off: math.log2(order) / (1.0 + roll_off),
        "What is the spectral efficiency log2(M)/(1+α) in bit/s/Hz of M = {order} at roll-off {roll_off}?",
        rf"efficiency of {{order}}PSK with {_ALPHA} using η=log2\(M\)/\(1\+α\)",
        rf"{{order}}PSK spectral efficiency .*\({_ALPHA}\) using η=log2\(M\)/\(1\+α\)",
        beside=("spectral", "setting", "baseband shaped"),
    ),
    formula(
        "order_of_shaped_efficiency",
        {"roll_off": _ROLL_OFF, "efficiency": ("1 bit/s/Hz", (1.5, 2.0, 3.5, 4.0))},
        "count",
        lambda roll_off, efficiency: _order(efficiency * (1.0 + roll_off)),
        "Which order M, a power of two, reaches {efficiency} at roll-off {roll_off}, by η = log2(M)/(1+α)?",
        rf"With {_ALPHA}, need η={{efficiency}} using η=log2\(M\)/\(1\+α\)\. Find M",
        beside=("M for target spectral efficiency",),
    ),
    formula(
        "order_of_rate",
        {"bit_rate": ("kbit/s", (96.0, 150.0, 320.0)), "bandwidth": ("kHz", (48.0, 75.0)), "roll_off": _ROLL_OFF},
        "count",
        lambda bit_rate, bandwidth, roll_off: _order(bit_rate * (1.0 + roll_off) / (2.0 * bandwidth)),
        "{bit_rate} must fit into a baseband {bandwidth} wide at roll-off {roll_off}. Which order M, a power of two, "
        "does it "
        "take at least?",
        rf"fit Rb={{bit_rate}} into baseband bandwidth B={{bandwidth}} with {_ALPHA}\.",
        beside=("modulation order", r"Rb=2B log2\(M\)/\(1\+α\)", "minimum power-of-2 M"),
    ),
    formula(
        "passband_efficiency",
        {"order": _ORDER},
        "1 bit/s/Hz",
        lambda order: 0.5 * math.log2(order),
        "What is the spectral efficiency 0.5·log2(M) in bit/s/Hz of NRZ-keyed PSK of order {order}?",
        Reading(
            r"efficiency of {order}PSK (?:using|with).*η ?= ?0\.5 log2\(M\)"
            r"(?: for passband PSK\. Find η for M={=same})?",
            implied={"same": lambda p: p["order"]},
        ),
        r"uses binary NRZ for {order}PSK\. Compute spectral efficiency",
        beside=("3000 Hz channel", "spectral", r"α=0 \(ideal Nyquist\)", "bandpass channel", "bandwidth 3000 Hz", "η"),
    ),
    formula(
        "order_of_passband_efficiency",
        {"efficiency": ("1 bit/s/Hz", (1.0, 2.5, 3.0, 4.0))},
        "count",
        lambda efficiency: _order(2.0 * efficiency),
        "Which order of PSK has the spectral efficiency 0.5·log2(M) = {efficiency}?",
        r"η=0\.5 log2\(M\)\. If η={efficiency:1}, find M",
        r"η={efficiency} under η=0\.5 log2\(M\)[.,] find M",
        beside=("spectral efficiency",),
    ),
    formula(
        "psk_rate",
        {"bandwidth": ("kHz", (3.0, 8.0, 20.0)), "order": _ORDER},
        "kbit/s",
        lambda bandwidth, order: bandwidth * 0.5 * math.log2(order),
        "Which rate in kbit/s does NRZ-keyed PSK of order {order} carry in {bandwidth}, at 0.5·log2(M) bit/s/Hz?",
        r"{bandwidth} bandpass channel uses {order}PSK under η=0\.5 log2\(M\)\. Find max bit rate",
    ),
    formula(
        "rate_of_efficiency",
        {"efficiency": ("1 bit/s/Hz", (0.8, 1.5, 2.4)), "bandwidth": ("kHz", (3.4, 10.0, 25.0))},
        "kbit/s",
        lambda efficiency, bandwidth: efficiency * bandwidth,
        "A modem reaches {efficiency} in a channel {bandwidth} wide. What is its rate in kbit/s?",
        r"efficiency for 2PSK is {efficiency} in a {bandwidth} channel, what is the maximum bit rate",
        beside=("spectral",),
    ),
    formula(
        "carson",
        {"message": _AUDIO, "deviation": _DEVIATION},
        "kHz",
        lambda message, deviation: 2.0 * (deviation + message),
        "An FM signal deviates by {deviation}; the highest frequency of its message is {message}. Which bandwidth in "
        "kHz does "
        "Carson's rule give?",
        r"carson.* fm={message}(?:,| and) Δf={deviation}\. Find BFM",
        r"FM with fm={message} and Δf={deviation}\. Find BFM",
        r"FM bandwidth given Δf={deviation} and fm={message} using Carson",
        beside=("Carson", "bandwidth", "FM"),
    ),
    formula(
        "carson_index",
        {"message": _AUDIO, "index": ("1", (0.5, 1.5, 3.0, 5.0))},
        "kHz",
        lambda message, index: 2.0 * (index + 1.0) * message,
        "An FM signal has index {index}; the highest frequency of its message is {message}. Which bandwidth in kHz "
        "does "
        "Carson's rule give?",
        r"fm={message}, β={index}\. Find FM bandwidth",
        beside=("Carson[’']s rule",),
    ),
    formula(
        "index_of_carson",
        {"bandwidth": ("kHz", (50.0, 90.0, 200.0)), "message": ("kHz", (4.0, 7.5, 15.0))},
        "1",
        lambda bandwidth, message: bandwidth / (2.0 * message) - 1.0,
        "An FM signal takes {bandwidth} by Carson's rule; the highest frequency of its message is {message}. What is "
        "its "
        "index?",
        r"FM bandwidth is {bandwidth} with fm={message}\. Find modulation index",
        beside=("Carson[’']s rule", "β"),
    ),
    formula(
        "fm_index",
        {"deviation": _DEVIATION, "message": _AUDIO},
        "1",
        lambda deviation, message: deviation / message,
        "An FM signal deviates by {deviation} under a tone of {message}. What is its index?",
        r"peak deviation Δf={deviation} and message frequency fm={message}\. Find β",
        beside=("FM",),
    ),
    formula(
        "fm_deviation",
        {"index": ("1", (0.5, 2.5, 4.0, 8.0)), "message": _AUDIO},
        "kHz",
        lambda index, message: index * message,
        "An FM signal has index {index} under a tone of {message}. What is its peak deviation in kHz?",
        r"Given β={index} and fm={message}, find Δf",
        beside=("FM peak deviation from phase term", r"s\(t\)=Ac cos\(2πfc t \+ β sin\(2πfm t\)\)"),
    ),
    formula(
        "fm_gain",
        {"index": ("1", (1.5, 2.0, 3.5, 6.0))},
        "1",
        lambda index: 3.0 * index**2 * (1.0 + index),
        "By which factor 3β²(1+β) does FM of index {index} improve the SNR?",
        r"For β={index}, compute GFM",
        beside=("FM SNR improvement", r"=3β\^2\(1\+β\)"),
    ),
    formula(
        "fm_input_power",
        {
            "snr": ("dB", (25.0, 35.0, 45.0)),
            "density": _DENSITY,
            "message": ("kHz", (4.0, 5.0, 15.0)),
            "deviation": ("kHz", (25.0, 50.0, 75.0)),
        },
        "W",
        _fm_input_w,
        "An FM discriminator of gain 3β²(1+β) must deliver an SNR of {snr}. Its noise has a one-sided density of "
        "{density}, "
        "the tone is {message}, the deviation {deviation}. Which power in W must it get in Carson's bandwidth?",
        r"output SNR={snr}, n0={density}, fm={message}, Δf={deviation}\..*GFM=3β\^2\(1\+β\)",
        r"SNR requirement is {snr}\. .*n0={density}\. .*fm={message}, Δf={deviation}\..*GFM=3β\^2\(1\+β\)",
        beside=(
            "FM (?:required )?input power",
            "post-detection",
            "discriminator",
            r"BFM[=≈]2\(Δf\+fm\)",
            "one-sided noise PSD",
            "single-tone FM",
            "β=Δf/fm",
            "(?:demodulator input signal power )?Si",
        ),
    ),
    formula(
        "am_input_power",
        {
            "snr": ("dB", (20.0, 25.0, 35.0)),
            "density": _DENSITY,
            "message": ("kHz", (3.0, 5.0)),
            "efficiency": ("1", (0.1, 0.2, 0.3)),
        },
        "W",
        _am_input_w,
        "A synchronous AM demodulator must deliver an SNR of {snr}. Its noise has a one-sided density of {density}, "
        "the tone "
        "is {message}, the efficiency of the AM signal {efficiency}. Which power in W must it get?",
        r"output SNR is {snr}, one-sided noise PSD n0={density}, modulating tone fm={message}, efficiency "
        r"η={efficiency}\.",
        beside=(
            "AM required input power with synchronous detection",
            "Ni=n0·2fm",
            r"Si=\(SNRo\)·Ni/GAM where β\^2=2η/\(1-η\)",
            r"GAM=2β\^2/\(2\+β\^2\)",
            "Si",
        ),
    ),
    formula(
        "pm_deviation",
        {"sensitivity": ("1 rad/V", (0.5, 1.2, 3.0)), "peak": ("1 V", (0.8, 2.0, 2.5))},
        "1 rad",
        lambda sensitivity, peak: sensitivity * peak,
        "A phase modulator of {sensitivity} gets a message that peaks at {peak}. What is the largest phase deviation "
        "in rad?",
        r"kp={sensitivity} and max m\(t\)={peak}, find max phase deviation",
        beside=("PM signal", r"s\(t\)=Ac cos\(ωc t \+ kp m\(t\)\)"),
    ),
    formula(
        "pm_bandwidth",
        {"deviation": ("1 rad", (1.0, 1.5, 3.0, 4.0)), "message": _AUDIO},
        "kHz",
        lambda deviation, message: 2.0 * (deviation + 1.0) * message,
        "A PM signal deviates by {deviation} under a tone of {message}. Which bandwidth in kHz does Carson's rule "
        "give?",
        r"PM bandwidth\. For φmax={deviation} and fm={message}, use Δf=φmax fm",
        beside=("B",),
    ),
    formula(
        "am_bandwidth",
        {"message": _AUDIO},
        "kHz",
        lambda message: 2.0 * message,
        "Which RF bandwidth in kHz does AM take for a message {message} wide?",
        r"AM bandwidth\. Message bandwidth W={message}\.",
        beside=(r"standard AM \(DSB with carrier\)", "RF bandwidth"),
    ),
    formula(
        "am_efficiency",
        {"depth": _DEPTH},
        "1",
        lambda depth: depth**2 / (2.0 + depth**2),
        "Which share of the power is in the sidebands of AM with index {depth}?",
        r"AM efficiency\. If μ={depth}, compute η",
        beside=(r"=μ\^2/\(2\+μ\^2\)",),
    ),
    formula(
        "am_depth",
        {"efficiency": ("1", (0.05, 0.1, 0.15, 0.25, 0.3))},
        "1",
        lambda efficiency: math.sqrt(2.0 * efficiency / (1.0 - efficiency)),
        "The sidebands of an AM signal carry {efficiency} of its power. What is its index?",
        r"Given η={efficiency}, find μ",
        beside=("AM modulation index from efficiency", r"standard AM efficiency η=μ\^2/\(2\+μ\^2\)"),
    ),
    formula(
        "am_total_power",
        {"carrier": ("W", (2.0, 5.0, 20.0, 50.0)), "depth": _DEPTH},
        "W",
        lambda carrier, depth: carrier * (1.0 + depth**2 / 2.0),
        "An AM carrier of {carrier} is modulated by a tone with index {depth}. What is the total power in W?",
        r"Pc={carrier} and μ={depth}, compute total power",
        beside=("AM total power", "carrier power", "PT"),
    ),
    formula(
        "am_sideband_power",
        {"carrier": ("W", (1.0, 4.0, 15.0, 40.0)), "depth": _DEPTH},
        "W",
        lambda carrier, depth: carrier * depth**2 / 2.0,
        "An AM carrier of {carrier} is modulated by a tone with index {depth}. What is the power of both sidebands in "
        "W?",
        r"sideband power\..*Pc={carrier}, (?:modulation index )?μ={depth}[ )].*total sideband power",
        beside=("AM", "carrier power", "single tone", "same parameters", "Psb,total"),
    ),
    formula(
        "dsb_output_snr",
        {"snr": ("1", (8.0, 15.0, 45.0, 120.0))},
        "dB",
        lambda snr: decibel(2.0 * snr),
        "A coherent DSB-SC demodulator, of gain 2, gets a linear SNR of {snr}. Which SNR in dB does it deliver?",
        r"DSB-SC output SNR\. If demod input Si/Ni={snr},",
        beside=(r"coherent DSB-SC has So/No=2\(Si/Ni\)", "So/No"),
    ),
    formula(
        "ssb_output_snr",
        {"snr": ("1", (8.0, 15.0, 45.0, 120.0))},
        "dB",
        decibel,
        "A coherent SSB-SC demodulator, of gain 1, gets a linear SNR of {snr}. Which SNR in dB does it deliver?",
        r"SSB-SC output SNR\. If input Si/Ni={snr} ",
        beside=(r"coherent SSB-SC has So/No= ?\(Si/Ni\) \(gain 1\)", "output SNR"),
    ),
    formula(
        "pcm_rate",
        {"sampling": ("kHz", (8.0, 16.0, 32.0, 44.1, 48.0)), "bits": _BITS},
        "kbit/s",
        lambda sampling, bits: sampling * bits,
        "A signal is sampled at {sampling}, with {bits} bits a sample. Which rate in kbit/s results?",
        r"PCM system samples at {sampling} and uses n={bits} bits(?:/| per )sample",
        r"E1: bits/frame={bits} and frame rate={sampling}\.",
        beside=("(?:bit|line) rate",),
    ),
    formula(
        "pcm_rate_nyquist",
        {"message": _AUDIO, "bits": _BITS},
        "kbit/s",
        lambda message, bits: 2.0 * message * bits,
        "A signal {message} wide is sampled at the Nyquist rate, with {bits} bits a sample. Which rate in kbit/s "
        "results?",
        r"fH={message} is sampled at Nyquist and quantized with {bits} bits/sample",
        beside=("PCM rate", "audio signal", "Rb"),
    ),
    formula(
        "tdm_rate",
        {"channels": ("count", (4.0, 16.0, 32.0, 60.0)), "sampling": ("kHz", (8.0, 16.0)), "bits": _BITS},
        "Mbit/s",
        lambda channels, sampling, bits: channels * sampling * bits / 1e3,
        "{channels} channels, each sampled at {sampling} with {bits} bits a sample, are multiplexed in time. Which "
        "rate in "
        "Mbit/s results?",
        r"{channels} channels, each sampled at {sampling} and encoded with {bits} bits(?:/sample)?",
        beside=("TDM-PCM", "multiplexed rate Rb", "aggregate (?:PCM bit )?rate"),
    ),
    formula(
        "tdm_rate_nyquist",
        {"channels": ("count", (6.0, 10.0, 18.0)), "message": _AUDIO, "bits": _BITS},
        "kbit/s",
        lambda channels, message, bits: channels * 2.0 * message * bits,
        "{channels} channels, each {message} wide and sampled at the Nyquist rate with {bits} bits a sample, are "
        "multiplexed "
        "in time. Which rate in kbit/s results?",
        r"{channels} analog channels each with fH={message} are sampled at Nyquist and encoded with {bits} bits/sample",
        beside=("PCM multiplexing", "total multiplexed bit rate"),
    ),
    formula(
        "tdm_channels",
        {
            "symbol_rate": ("1 baud", (960000.0, 1920000.0, 3840000.0)),
            "message": ("kHz", (3.0, 4.0)),
            "bits": ("count", (8.0, 10.0)),
        },
        "count",
        lambda symbol_rate, message, bits: symbol_rate / (2e3 * message * bits),
        "How many channels {message} wide, each sampled at the Nyquist rate with {bits} bits a sample, fill a binary "
        "link of "
        "{symbol_rate}?",
        r"Rs={symbol_rate} \(assume 1 bit/symbol\)\..*fH={message} and is PCM encoded with n={bits} bits/sample at "
        r"Nyquist",
        beside=(
            "TDM multiplexing",
            "TDM link supports symbol rate",
            "each of l analog channels",
            "channels l can be multiplexed",
        ),
    ),
    formula(
        "frame_duration",
        {"sampling": ("kHz", (4.0, 16.0, 20.0, 32.0))},
        "µs",
        lambda sampling: 1e3 / sampling,
        "A PCM frame is sent for each sample, at {sampling}. How long is it, in µs?",
        r"sampling rate {sampling}, find the frame duration",
        r"Sampling frequency is {sampling}\. What is frame duration",
        beside=(r"A-law PCM primary group \(E1\)", "PCM frame duration"),
    ),
    formula(
        "slot_duration",
        {"frame": ("µs", (125.0, 250.0, 500.0)), "slots": ("count", (8.0, 24.0, 64.0))},
        "µs",
        lambda frame, slots: frame / slots,
        "A frame of {frame} has {slots} slots. How long is a slot, in µs?",
        r"frame duration is {frame} and there are {slots} time slots, what is the duration of one",
        beside=("E1", "time slot"),
    ),
    formula(
        "sample_bits",
        {"levels": _LEVELS},
        "count",
        math.log2,
        "How many bits name one of {levels} levels?",
        r"PCM bits per sample given L={levels} levels",
    ),
    formula(
        "sqnr",
        {"levels": _LEVELS},
        "dB",
        lambda levels: 20.0 * math.log10(levels),
        "What is the signal to quantization noise ratio 20·log10(M) in dB for {levels} levels?",
        r"SQNR.*20log10\(M\)\. If M={levels} levels",
        r"M={levels} levels\. (?:Compute SQNR under|Using) SQNR\(dB\)=20log10\(M\)",
        beside=("(?:uniform )?quantizer", "SQNR"),
    ),
    formula(
        "step_of_levels",
        {"low": ("1 V", (-5.0, -2.0, -1.0)), "high": ("1 V", (1.0, 2.0, 5.0)), "levels": _LEVELS},
        "1 V",
        lambda low, high, levels: (high - low) / (levels - 1.0),
        "{levels} levels, both ends included, cover the range from {low} to {high}. What is the step in V?",
        r"range is from {low} to \+?{high}\. A uniform quantizer uses L={levels} levels including endpoints",
        beside=("uniform quantization step size", "signal", "step size Δ"),
    ),
    formula(
        "step_of_bits",
        {"low": ("1 V", (-4.0, -2.5, -1.5)), "high": ("1 V", (1.5, 2.5, 4.0)), "bits": _BITS},
        "1 V",
        lambda low, high, bits: (high - low) / (2.0**bits - 1.0),
        "Samples of {bits} bits, both ends included, cover the range from {low} to {high}. What is the step in V?",
        r"range {low:high} to \+?{high}, n={bits} bits, endpoints included",
        beside=("uniform quantizer", "step size Δ"),
    ),
    formula(
        "step_of_range",
        {"bits": _BITS, "span": ("1 V", (1.0, 2.0, 3.3, 10.0))},
        "1 V",
        lambda bits, span: span / 2.0**bits,
        "Samples of {bits} bits divide a range of {span} into equal steps. What is the step in V?",
        r"n={bits} bits/sample over amplitude range {span}\.",
        beside=("uniform PCM", "quantization step Δ"),
    ),
    formula(
        "levels_of_step",
        {"step": ("1 V", (0.1, 0.2, 0.25)), "low": ("1 V", (-5.0, -1.0)), "high": ("1 V", (1.0, 3.0, 7.0))},
        "count",
        lambda step, low, high: (high - low) / step + 1.0,
        "Steps of {step} cover the range from {low} to {high}, both ends included. How many levels are there?",
        r"Δ={step} and range is {low:high} to {high} with endpoints included, find L",
        beside=("uniform quantizer",),
    ),
    formula(
        "bits_of_step",
        {"step": ("1 V", (0.01, 0.05, 0.2)), "low": ("1 V", (-6.0, -3.0)), "high": ("1 V", (3.0, 4.0, 6.0))},
        "count",
        lambda step, low, high: math.log2(_order(math.log2((high - low) / step + 1.0))),
        "Steps of {step} cover the range from {low} to {high}, both ends included. How many bits does a sample need?",
        r"step Δ={step}, compute number of bits needed if full-scale range is {low} to \+?{high} and endpoints "
        r"included",
        beside=("uniform quantizer",),
    ),
    formula(
        "sequence_period",
        {"degree": ("count", (3.0, 5.0, 7.0, 9.0, 11.0, 15.0))},
        "count",
        lambda degree: 2.0**degree - 1.0,
        "What is the period of an m-sequence of degree {degree}?",
        r"m-sequence .*degree (?:n=)?{degree}\b.*period",
        beside=("LFSR", "generates a maximal length sequence", "length"),
    ),
    formula(
        "sequence_degree",
        {"period": ("count", (7.0, 31.0, 127.0, 511.0, 2047.0))},
        "count",
        lambda period: math.log2(period + 1.0),
        "An m-sequence has period {period}. What is its degree?",
        r"maximal-length LFSR has period {period}\. Find degree",
        beside=("n",),
    ),
    formula(
        "sequence_time",
        {"rate": ("1 cps", (1000000.0, 1228800.0, 4000000.0)), "chips": ("count", (63.0, 127.0, 511.0))},
        "µs",
        lambda rate, chips: chips / rate * 1e6,
        "A sequence of {chips} chips runs at {rate}. How long is a period, in µs?",
        r"chip rate is {rate} and m-sequence (?:period|length) is {chips}\b",
        beside=("chips", "(?:sequence )?period time"),
    ),
    formula(
        "parity_bits",
        {"length": ("count", (31.0, 63.0, 127.0, 255.0)), "message": ("count", (7.0, 11.0, 16.0, 21.0))},
        "count",
        lambda length, message: length - message,
        "How many parity bits does a block code of length {length} add to {message} message bits?",
        r"\({length}, ?{message}\) linear block code: how many parity bits",
        beside=("are added",),
    ),
    formula(
        "codewords",
        {"length": ("count", (15.0, 23.0, 31.0)), "message": ("count", (5.0, 7.0, 11.0, 12.0))},
        "count",
        lambda length, message: 2.0**message,
        "How many codewords has a binary block code of length {length} with {message} message bits?",
        r"\({length}, ?{message}\) code, how many codewords",
        beside=("exist",),
    ),
    formula(
        "code_distance",
        {"errors": ("count", (2.0, 3.0, 4.0, 5.0))},
        "count",
        lambda errors: 2.0 * errors + 1.0,
        "Which minimum distance does a code need to correct {errors} errors?",
        r"code can correct {errors} errors?\. What is its minimum distance",
        beside=(r"\(7,4\)", "dmin"),
    ),
    formula(
        "overhead",
        {"preamble": ("count", (2.0, 4.0, 6.0)), "payload": ("count", (16.0, 30.0, 44.0))},
        "%",
        lambda preamble, payload: 100.0 * preamble / (preamble + payload),
        "{preamble} preamble symbols go before every {payload} data symbols. Which share in % of the symbols is lost?",
        r"{preamble} preamble symbols accompany every {payload} data symbols, what is percentage efficiency loss",
        beside=("capacity loss due to overhead",),
    ),
    formula(
        "net_bits",
        {"bits": ("count", (2.0, 4.0, 8.0)), "taken": ("count", (1.0, 2.0, 5.0)), "sent": ("count", (6.0, 7.0))},
        "1 bit",
        lambda bits, taken, sent: bits * taken / sent,
        "A subcarrier carries {bits} bits under a code of rate {taken}/{sent}. How many bits of the message are among "
        "them?",
        Reading(
            r"{=order}-QAM \({bits} bits/subcarrier\) with coding rate {taken}/{sent}\..*net bits",
            implied={"order": lambda p: 2.0 ** p["bits"]},
        ),
        beside=("20 MHz Wi-Fi-like OFDM", "ignoring overhead", "per subcarrier symbol"),
    ),
    formula(
        "energy_per_bit",
        {"energy": ("1", (3.0, 8.0, 12.0)), "bits": ("count", (2.0, 3.0, 6.0))},
        "1",
        lambda energy, bits: energy / bits,
        "A symbol of {bits} bits has energy {energy}. What is the energy of a bit?",
        Reading(
            r"Es={energy} for {=order}-QAM and k={bits} bits/symbol, compute Eb",
            implied={"order": lambda p: 2.0 ** p["bits"]},
        ),
    ),
    formula(
        "information",
        {"probability": ("1", (0.01, 0.02, 0.1, 0.2, 0.3))},
        "1 bit",
        lambda probability: -math.log2(probability),
        "A symbol has probability {probability}. How many bits of information does it carry?",
        r"symbol probability is {probability}, compute I=-log2 P",
        beside=("information content",),
    ),
    formula(
        "probability_of_information",
        {"information": ("1 bit", (1.5, 2.0, 3.0, 6.0, 7.0))},
        "1",
        lambda information: 2.0**-information,
        "A symbol carries {information} of information. How probable is it?",
        r"information content I={information}s?, what is its probability",
        beside=("symbol", "P"),
    ),
    formula(
        "entropy",
        {"first": ("1", (0.5, 0.45, 0.4)), "second": ("1", (0.1, 0.15, 0.2, 0.3))},
        "1 bit",
        lambda first, second: _entropy(first, second, 1.0 - first - second),
        "Of three symbols, one has probability {first}, another {second}, the third the rest. What is the entropy in "
        "bit a "
        "symbol?",
        Reading(
            r"3 symbols with probabilities {first}, ?{second}, ?{=third}\. Compute H",
            implied={"third": lambda p: 1.0 - p["first"] - p["second"]},
        ),
        beside=("information entropy", "source emits", "bits/symbol"),
    ),
    formula(
        "bsc_capacity",
        {"crossover": ("1", (0.01, 0.03, 0.05, 0.11, 0.2))},
        "1 bit",
        lambda crossover: 1.0 - _entropy(crossover, 1.0 - crossover),
        "What is the capacity in bit a use of a binary symmetric channel with crossover probability {crossover}?",
        r"crossover probability p={crossover}, compute capacity C=1-H2\(p\)",
        beside=("BSC capacity", "bits/use"),
    ),
    formula(
        "channel_rate",
        {"uses": ("1", (2e4, 5e5, 3e6)), "capacity": ("1 bit", (0.5, 0.71, 0.86))},
        "bit/s",
        lambda uses, capacity: uses * capacity,
        "A channel is used {uses} times a second, and carries {capacity} at each use. What is its rate in bit/s?",
        r"channel uses per second is {uses} and BSC capacity is {capacity}s/use, compute info rate",
        beside=("BSC mutual information rate",),
    ),
    formula(
        "information_rate",
        {"entropy": ("1 bit", (0.8, 1.4, 2.2, 3.1)), "symbol_rate": ("1 baud", (400.0, 3000.0, 12000.0))},
        "bit/s",
        lambda entropy, symbol_rate: entropy * symbol_rate,
        "A source of entropy {entropy} a symbol sends at {symbol_rate}. What is its information rate in bit/s?",
        r"entropy (?:is |H=){entropy}s/symbol and (?:symbol rate is|emits) {symbol_rate}, compute",
        beside=("average info(?:rmation)? rate", "source", "rate"),
    ),
    formula(
        "symbol_rate_of_fade",
        {"fade": ("s", (0.008, 0.025, 0.04, 0.1))},
        "1 baud",
        lambda fade: 1.0 / fade,
        "A fade lasts {fade} on average, and a symbol shall last as long. What is the symbol rate in baud?",
        r"average fade duration is (?:\(bar Tr=)?{fade},?\)?,? and "
        r"(?:you set Rs=1/Tf|symbol rate is chosen as Rs=1/bar Tr), find (?:symbol rate|Rs)",
    ),
    formula(
        "fade_of_symbol_rate",
        {"symbol_rate": ("1 baud", (40.0, 125.0, 400.0, 800.0))},
        "s",
        lambda symbol_rate: 1.0 / symbol_rate,
        "Symbols are sent at {symbol_rate}, each as long as a fade on average. How long is that, in s?",
        r"Rs={symbol_rate}\. What average fade duration",
        beside=("does this correspond to if Rs=1/Tf",),
    ),
)
