"""What the paper prints, typed in from its source: Tables 1 to 4.

"↓" marks what the paper found significantly worse than the best of its row, "NA" a trial that took
more than four hours.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reported:
    """A printed mean and standard deviation over the paper's 20 trials."""

    mean: float
    std: float
    worse: bool = False


N_TRIALS = 20

SETS = (
    "vowel", "protein", "dna", "pageblocks", "isolet", "har",
    "pendigits", "letter", "fashion", "mnist", "sensit",
)  # fmt: skip
METHODS = ("RF", "LS", "QN-S3VM", "Semi-LDA", "DAS-RF", "FSLA", "CSLA", "MSLA")
MODES = ("uniform", "supervised", "oracle")

_TABLE_1 = """
99 891 10 11
129 951 77 8
31 3155 180 3
1094 4379 10 5
389 7408 617 26
102 10197 561 6
109 10883 16 10
400 19600 16 26
175 69825 784 10
175 69825 784 10
49 98479 100 3
"""

_TABLE_2 = """
.586±.028   .602±.026   .208±.029↓  .432±.029↓  .587±.028   .531±.034↓  .576±.031↓  .586±.026
.764±.032↓  .825±.028   .72±.034↓   .842±.029   .768±.036↓  .687±.036↓  .771±.035↓  .781±.034↓
.693±.074↓  .584±.038↓  .815±.025   .573±.037↓  .693±.083↓  .521±.095↓  .671±.112↓  .702±.082↓
.965±.003   .905±.004↓  .931±.003↓  .935±.009↓  .965±.003   .964±.004   .965±.003   .966±.002
.854±.016↓  .727±.01↓   .652±.016↓  .787±.019↓  .859±.018↓  .7±.04↓     .843±.021↓  .875±.014
.851±.024   .215±.05↓   .78±.02↓    .743±.043↓  .852±.024   .81±.041↓   .841±.029   .854±.026
.863±.022↓  .916±.013   .675±.022↓  .824±.012↓  .872±.023↓  .839±.036↓  .871±.029↓  .884±.022↓
.711±.011   .664±.01↓   .064±.013↓  .589±.016↓  .718±.012   .651±.015↓  .72±.013    .717±.013
.718±.022   NA          NA          .537±.027↓  .722±.023   .64±.04↓    .713±.026   .723±.023
.798±.015↓  NA          NA          .423±.029↓  .822±.017↓  .705±.055↓  .829±.02↓   .857±.013
.723±.022   NA          NA          .647±.042↓  .723±.022   .692±.023↓  .713±.024   .722±.021
"""

_TABLE_3 = """
.586±.029 .586±.026 .599±.028
.773±.034 .781±.034 .805±.036
.697±.079 .702±.082 .721±.09
.965±.002 .966±.002 .966±.002
.869±.015 .875±.014 .885±.012
.852±.025 .854±.026 .856±.022
.873±.024 .884±.022 .892±.016
.716±.013 .717±.013 .723±.012
.722±.022 .723±.023 .728±.024
.834±.016 .857±.013 .87±.012
.722±.021 .722±.021 .722±.021
"""

_TABLE_4 = """
1s  6s   2s   3s   7s   11s  2s   5s
1s  22s  4m   5s   6s   10s  2s   4s
1s  1m   26s  1s   9s   7s   3s   4s
1s  2m   2m   14s  9s   12s  3s   6s
1s  1m   1h   10s  38s  16s  5s   28s
1s  18m  32m  3s   42s  23s  6s   13s
1s  30m  10m  37s  13s  13s  3s   14s
1s  3h   40m  1m   20s  16s  5s   1m
1s  >4h  >4h  1m   2m   1m   29s  1m
1s  >4h  >4h  1m   2m   1m   29s  1m
1s  >4h  >4h  2m   3m   2m   30s  1m
"""


def _parse(text: str) -> Reported | None:
    if text == "NA":
        return None
    mean, std = text.rstrip("↓").split("±")
    return Reported(float(mean), float(std), text.endswith("↓"))


def _grid(text: str, columns: tuple[str, ...]) -> dict[str, dict[str, str]]:
    lines = text.strip().splitlines()
    return {name: dict(zip(columns, line.split(), strict=True)) for name, line in zip(SETS, lines)}


def _accuracies(text: str, columns: tuple[str, ...]) -> dict[str, dict[str, Reported | None]]:
    return {
        name: {column: _parse(cell) for column, cell in row.items()}
        for name, row in _grid(text, columns).items()
    }


TABLE_1 = {
    name: {column: int(value) for column, value in row.items()}
    for name, row in _grid(_TABLE_1, ("l", "u", "d", "K")).items()
}
TABLE_2 = _accuracies(_TABLE_2, METHODS)
TABLE_3 = _accuracies(_TABLE_3, MODES)
TABLE_4 = {
    name: {
        column: cell[:-1] + " " + cell[-1] for column, cell in row.items()
    }
    for name, row in _grid(_TABLE_4, METHODS).items()
}  # fmt: skip
