// SPDX-License-Identifier: Apache-2.0
/**
 * attention_card.tsx - who looks at whom. A grid of all layers and heads, each a small map; the
 * chosen one is drawn large, and a list says in words where one byte looks.
 */
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Probe } from '../../lib/types';
import { Card } from '../parts/card';
import { Words } from '../parts/term';
import { markAt } from './characters';
import { GridTable, type CellPlace } from './grid_table';
import { Heatmap } from './heatmap';
import { attentionMap, topK } from './maths';
import { percentOf } from './next_bytes';
import { keys } from '../shortcuts';
import { useSpelling } from './spelling';
import { Mark } from './token';

/** The large map: hovering or the arrow keys choose who looks and at whom. */
function LargeMap({
  probe,
  map,
  at,
  onAt,
  label,
}: {
  probe: Probe;
  map: Float32Array;
  at: CellPlace;
  onAt: (place: CellPlace) => void;
  label: string;
}) {
  const n = probe.tokens.length;
  const { unit } = useSpelling();
  const weight = map[at.row * n + at.col] ?? 0;
  const words =
    `${unit} ${at.row + 1}, ${markAt(probe.tokens, at.row).name}, looks at ${unit} ` +
    `${at.col + 1}, ${markAt(probe.tokens, at.col).name}: ${percentOf(weight)}`;
  const go = (rows: number, cols: number) => {
    const row = Math.min(n - 1, Math.max(0, at.row + rows));
    onAt({ row, col: Math.min(row, Math.max(0, at.col + cols)) });
  };
  const fromPointer = (e: PointerEvent) => {
    const box = (e.currentTarget as HTMLElement).getBoundingClientRect();
    const row = Math.floor(((e.clientY - box.top) / box.height) * n);
    const col = Math.floor(((e.clientX - box.left) / box.width) * n);
    // Nothing looks ahead: above the diagonal the diagonal is meant.
    if (row >= 0 && row < n && col >= 0) onAt({ row, col: Math.min(col, row) });
  };
  return (
    <div
      class="think-large"
      role="slider"
      tabIndex={0}
      aria-label={`${label}: arrows up and down choose who looks, left and right at whom`}
      aria-valuemin={1}
      aria-valuemax={n}
      aria-valuenow={at.col + 1}
      aria-valuetext={words}
      style={{ '--n': n }}
      onPointerMove={fromPointer}
      onPointerDown={fromPointer}
      onKeyDown={keys('picture', {
        up: () => go(-1, 0),
        down: () => go(1, 0),
        left: () => go(0, -1),
        right: () => go(0, 1),
      })}
    >
      <Heatmap weights={map} size={n} class="think-large-map" />
      <span class="think-cross" aria-hidden="true" style={{ '--row': at.row, '--col': at.col }} />
    </div>
  );
}

/** The chosen head, large. Hovering draws only this part anew. */
function OneHead({
  probe,
  map,
  name,
  position,
}: {
  probe: Probe;
  map: Float32Array;
  name: string;
  position: number;
}) {
  const [at, setAt] = useState<CellPlace | null>(null);
  const { unit } = useSpelling();
  useEffect(() => setAt(null), [position]);
  const n = probe.tokens.length;
  const row = Math.min(at?.row ?? position, n - 1);
  const best = topK(map.subarray(row * n, row * n + row + 1), 5);
  const place = { row, col: Math.min(at?.col ?? best[0]?.id ?? 0, row) };
  return (
    <div class="think-attention-one">
      <h3>
        <Words>{name}</Words>
      </h3>
      <LargeMap probe={probe} map={map} at={place} onAt={setAt} label={name} />
      <div class="stack-tight">
        <p class="think-readout number">
          <b>{markAt(probe.tokens, place.row).mark}</b> <span class="quiet">at {place.row + 1}</span> looks at{' '}
          <b>{markAt(probe.tokens, place.col).mark}</b> <span class="quiet">at {place.col + 1}</span>:{' '}
          {percentOf(map[place.row * n + place.col] ?? 0)}
        </p>
        <ol class="think-bars" aria-label={`Where ${unit} ${row + 1} looks most`}>
          {best.map(({ id, p }) => (
            <li key={id} class="think-bar">
              <Mark token={markAt(probe.tokens, id)} />
              <span class="think-bar-track">
                <span class="think-bar-fill" style={{ width: `${100 * p}%` }} />
              </span>
              <span class="think-bar-number">
                <span class="think-bar-was">at {id + 1}</span> {percentOf(p)}
              </span>
            </li>
          ))}
        </ol>
      </div>
    </div>
  );
}

export function AttentionCard({ probe, position }: { probe: Probe; position: number }) {
  const [chosen, setChosen] = useState<CellPlace>({ row: probe.layers - 1, col: 0 });
  const { layers, heads } = probe;
  const { unit } = useSpelling();
  const n = probe.tokens.length;
  // The same views while the probe is the same, so that only new maps are painted.
  const maps = useMemo(
    () =>
      Array.from({ length: layers }, (_, l) =>
        Array.from({ length: heads }, (__, h) => attentionMap(probe, l, h)),
      ),
    [probe],
  );
  const mapAt = (l: number, h: number) => maps[l]?.[h] ?? new Float32Array(n * n);
  // The model may have become another one with fewer layers or heads.
  const layer = Math.min(chosen.row, layers - 1);
  const head = Math.min(chosen.col, heads - 1);
  const strongest = (l: number, h: number) => {
    const [top] = topK(mapAt(l, h).subarray(position * n, position * n + position + 1), 1);
    return (
      `layer ${l + 1}, head ${h + 1}: ${unit} ${position + 1} looks most at ${unit} ` +
      `${(top?.id ?? 0) + 1}, ${percentOf(top?.p ?? 0)}`
    );
  };
  return (
    <Card
      class="think-card"
      title="Attention"
      aside="Rows look, columns are looked at; a stronger colour is more."
    >
      <div class="think-attention">
        <GridTable
          class="think-heads"
          label="Attention of every layer and head"
          rows={layers}
          cols={heads}
          corner="layer"
          rowHead={(l) => l + 1}
          colHead={(h) => `head ${h + 1}`}
          cell={(l, h) => <Heatmap weights={mapAt(l, h)} size={n} />}
          cellName={strongest}
          selected={{ row: layer, col: head }}
          onSelect={setChosen}
        />
        <OneHead
          probe={probe}
          map={mapAt(layer, head)}
          name={`Layer ${layer + 1}, head ${head + 1}`}
          position={position}
        />
      </div>
    </Card>
  );
}
