"""What the colour-blind see, and how far apart two colours are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: From linear RGB to what is seen of it, at full severity. Machado, Oliveira, Fernandes: A
#: physiologically-based model for simulation of color vision deficiency. IEEE TVCG 15(6), 2009.
VISIONS = {
    "all colours": np.eye(3),
    "protanopia": np.array([
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ]),
    "deuteranopia": np.array([
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ]),
    "tritanopia": np.array([
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ]),
}  # fmt: skip
#: From linear sRGB to XYZ (IEC 61966-2-1); the sums of the rows are the white point, D65.
XYZ = np.array([
    [0.4124564, 0.3575761, 0.1804375],
    [0.2126729, 0.7151522, 0.0721750],
    [0.0193339, 0.1191920, 0.9503041],
])  # fmt: skip


def linear(colour: str) -> Floats:
    """From #RRGGBB to linear RGB."""
    parts = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """The contrast of WCAG 2: 1 for the same, 21 for black on white."""
    darker, lighter = sorted(float(XYZ[1] @ linear(colour)) for colour in (one, other))
    return (lighter + 0.05) / (darker + 0.05)


def lab(rgb: Floats) -> Floats:
    """From linear RGB to CIE L*a*b*."""
    t = XYZ @ np.clip(rgb, 0, 1) / XYZ.sum(axis=1)
    x, y, z = np.where(t > (6 / 29) ** 3, np.cbrt(t), t / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def difference(one: str, other: str, vision: str) -> float:
    """ΔE of CIE 2000 between two colours as they are seen."""
    return delta_e(*(lab(VISIONS[vision] @ linear(colour)) for colour in (one, other)))


def delta_e(one: Floats, other: Floats) -> float:
    """ΔE of CIE 2000, as in Sharma, Wu, Dalal: Color Research and Application 30(1), 2005."""
    (L1, a1, b1), (L2, a2, b2) = one, other
    C7 = ((np.hypot(a1, b1) + np.hypot(a2, b2)) / 2) ** 7
    G = 0.5 * (1 - np.sqrt(C7 / (C7 + 25.0**7)))
    C1, C2 = np.hypot((1 + G) * a1, b1), np.hypot((1 + G) * a2, b2)
    h1, h2 = (np.degrees(np.arctan2(b, (1 + G) * a)) % 360 for a, b in ((a1, b1), (a2, b2)))
    dL, dC = L2 - L1, C2 - C1
    turn = 0.0 if C1 * C2 == 0 else (h2 - h1 + 180) % 360 - 180
    dH = 2 * np.sqrt(C1 * C2) * np.sin(np.radians(turn / 2))
    L, C = (L1 + L2) / 2, (C1 + C2) / 2
    h = h1 + h2 if C1 * C2 == 0 else (h1 + turn / 2) % 360
    T = (
        1
        - 0.17 * np.cos(np.radians(h - 30))
        + 0.24 * np.cos(np.radians(2 * h))
        + 0.32 * np.cos(np.radians(3 * h + 6))
        - 0.20 * np.cos(np.radians(4 * h - 63))
    )
    SL = 1 + 0.015 * (L - 50) ** 2 / np.sqrt(20 + (L - 50) ** 2)
    SC, SH = 1 + 0.045 * C, 1 + 0.015 * C * T
    rotation = -np.sin(np.radians(60 * np.exp(-(((h - 275) / 25) ** 2)))) * 2
    rotation *= np.sqrt(C**7 / (C**7 + 25.0**7))
    l, c, H = dL / SL, dC / SC, dH / SH  # noqa: E741
    return float(np.sqrt(l**2 + c**2 + H**2 + rotation * c * H))
