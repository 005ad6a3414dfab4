// SPDX-License-Identifier: Apache-2.0
/**
 * lens_card.tsx - the logit lens: what the model would say next if it ended after each block. The
 * way from the bottom row (no block yet) to the top one is the model making up its mind.
 */
import type { Probe } from '../../lib/types';
import { capital } from '../format';
import { Card } from '../parts/card';
import { P } from '../parts/term';
import { markAt } from './characters';
import { GridTable } from './grid_table';
import { lensTable, nextAt } from './maths';
import { NextBytes, percentOf } from './next_bytes';
import { useSpelling } from './spelling';
import { Mark, Token } from './token';

export function depthName(depth: number, layers: number): string {
  if (depth === 0) return 'before any layer';
  return depth === layers ? `after layer ${depth}, the answer` : `after layer ${depth}`;
}

export function LensCard({
  probe,
  position,
  depth,
  onSelect,
}: {
  probe: Probe;
  position: number;
  depth: number;
  onSelect: (position: number, depth: number) => void;
}) {
  const table = lensTable(probe);
  const { unit, visible } = useSpelling();
  const { layers, tokens } = probe;
  // The whole model's row is on top.
  const depthOf = (row: number) => layers - row;
  const cellOf = (row: number, col: number) => table[depthOf(row)]?.[col] ?? { id: 0, p: 0 };
  const actual = position + 1 < tokens.length ? (tokens[position + 1] as number) : -1;
  return (
    <Card
      class="think-card"
      title="Logit lens"
      aside={`The likeliest next ${unit}, had the model ended there.`}
    >
      <GridTable
        class="think-lens"
        label={`Likeliest next ${unit} after each layer, for each ${unit} of the text`}
        rows={layers + 1}
        cols={tokens.length}
        corner="layer"
        rowHead={(row) => depthOf(row)}
        colHead={(t) => <Mark token={markAt(tokens, t)} />}
        cell={(row, t) => <Token id={cellOf(row, t).id} />}
        cellName={(row, t) => {
          const { id, p } = cellOf(row, t);
          const right = t + 1 < tokens.length && tokens[t + 1] === id ? ', right' : '';
          return (
            `${depthName(depthOf(row), layers)}, ${unit} ${t + 1}: ${visible(id).name}, ` +
            `${percentOf(p)}${right}`
          );
        }}
        cellClass={(row, t) =>
          t + 1 < tokens.length && tokens[t + 1] === cellOf(row, t).id
            ? 'think-heat think-right'
            : 'think-heat'
        }
        cellStyle={(row, t) => ({ '--heat': Math.round(100 * cellOf(row, t).p) })}
        selected={{ row: layers - depth, col: position }}
        onSelect={({ row, col }) => onSelect(col, depthOf(row))}
      />
      <P class="quiet">
        Stronger ground: surer. Underlined: it is what really came next. Row 0 sees the {unit} alone.
      </P>
      {depth !== layers && (
        <div class="think-under">
          <h3>
            {capital(unit)} {position + 1}, {depthName(depth, layers)}
          </h3>
          <NextBytes
            label={`Next ${unit} ${depthName(depth, layers)}`}
            p={nextAt(probe, position, depth)}
            actual={actual}
            count={5}
          />
        </div>
      )}
    </Card>
  );
}
