// SPDX-License-Identifier: Apache-2.0
/**
 * probe_double.ts - for tests: a tiny model in plain code whose insides are known, so that ablation
 * and patching have results that can be told in advance. One position's stream is a number,
 *
 *     x0 = token,   block l: x += mlp(l) + sum over heads of head(l, h)
 *     head(l, h) = 0.1 * (h + 1) * mean of x over the positions up to this one
 *     mlp(l) = 0.01 * l * x
 *
 * and the logits for token v are -(v - x mod V)^2, so that the likeliest token follows x.
 */
import type { Edit, Probe } from '../../lib/types';

export const DOUBLE = { layers: 2, heads: 2, vocab: 8 } as const;

type Parts = { block: number[]; attention: number[]; mlp: number[]; head: number[][] }[];

function edited(
  edits: Edit[],
  part: Edit['part'],
  layer: number,
  head: number | undefined,
  t: number,
) {
  return edits.find(
    (e) =>
      e.part === part &&
      e.layer === layer &&
      e.head === head &&
      (e.position === undefined || e.position === t),
  );
}

function run(tokens: Int32Array, edits: Edit[], donor: Parts | undefined): [Probe, Parts] {
  const { layers, heads, vocab } = DOUBLE;
  const n = tokens.length;
  const lens = new Float32Array((layers + 1) * n * vocab);
  const attention = new Float32Array(layers * heads * n * n);
  const parts: Parts = [];
  let x = Array.from(tokens);
  const keep = (depth: number) =>
    x.forEach((value, t) => {
      for (let v = 0; v < vocab; v++)
        lens[(depth * n + t) * vocab + v] = -((v - (value % vocab)) ** 2);
    });
  keep(0);
  for (let layer = 0; layer < layers; layer++) {
    const part = {
      block: [] as number[],
      attention: [] as number[],
      mlp: [] as number[],
      head: Array.from({ length: heads }, () => [] as number[]),
    };
    parts.push(part);
    const pick = (name: 'block' | 'attention' | 'mlp', t: number, value: number): number => {
      const edit = edited(edits, name, layer, undefined, t);
      const out = !edit
        ? value
        : edit.kind === 'zero'
          ? name === 'block'
            ? (x[t] as number)
            : 0
          : (donor?.[layer]?.[name][t] as number);
      part[name][t] = out;
      return out;
    };
    const next: number[] = [];
    for (let t = 0; t < n; t++) {
      const mean = x.slice(0, t + 1).reduce((a, b) => a + b) / (t + 1);
      let sum = 0;
      for (let h = 0; h < heads; h++) {
        for (let s = 0; s <= t; s++) attention[((layer * heads + h) * n + t) * n + s] = 1 / (t + 1);
        if (!edited(edits, 'head', layer, h, t)) sum += 0.1 * (h + 1) * mean;
      }
      const a = pick('attention', t, sum);
      const m = pick('mlp', t, 0.01 * layer * (x[t] as number));
      next.push(pick('block', t, (x[t] as number) + a + m));
    }
    x = next;
    keep(layer + 1);
  }
  return [{ tokens, layers, heads, vocab, attention, lens }, parts];
}

/** Model.probe of the double. `calls` counts the runs. */
export function doubleProbe(): {
  probe: (p: Int32Array, e?: Edit[], d?: Int32Array) => Promise<Probe>;
  calls: number;
} {
  const state = {
    calls: 0,
    async probe(prompt: Int32Array, edits: Edit[] = [], donor?: Int32Array) {
      state.calls++;
      return run(prompt, edits, donor ? run(donor, [], undefined)[1] : undefined)[0];
    },
  };
  return state;
}
