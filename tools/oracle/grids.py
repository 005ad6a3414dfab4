#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/dtype/grids.def: the grids of GGUF's IQ1 to IQ3 types, as numbers.

A grid is a list of points of eight (IQ1, IQ2) or four (IQ3) coordinates, of which a file has the place.
The points were chosen by the authors of the format, and stand in its Python package `gguf`; here a
point is one number, whose lowest two or three bits are the place of its first coordinate among the
values that the grid has.
"""
import os

from gguf import quants

# Values are those of blocks_grid.c; IQ1_M has the grid of IQ1_S.
GRIDS = {"IQ2_XXS": 2, "IQ2_XS": 2, "IQ2_S": 2, "IQ3_XXS": 3, "IQ3_S": 3, "IQ1_S": 2}


def main():
    path = os.path.join(os.path.dirname(__file__), "../../src/dtype/grids.def")
    with open(path, "w", encoding="utf-8") as f:
        f.write("/* SPDX-License-Identifier: Apache-2.0 */\n"
                "/* grids.def - made by tools/oracle/grids.py from the Python package gguf: the points of grids, a\n"
                " * number each (blocks_grid.c), the first coordinate in its lowest bits. */\n")
        for name, bits in GRIDS.items():
            kind = getattr(quants, name)
            kind.init_grid()
            values = list(kind.grid_map)
            points = []
            for point in kind.grid.reshape(kind.grid_shape):
                points.append(sum(values.index(int(v)) << bits * i for i, v in enumerate(point)))
            f.write(f"static const uint16_t grid_{name.lower()}[{len(points)}] = {{\n")
            line = ""
            for p in points:
                if len(line) + len(f"{p},") > 99:
                    f.write(line + "\n")
                    line = ""
                line += f"{p},"
            f.write(line + "\n};\n")


main()
