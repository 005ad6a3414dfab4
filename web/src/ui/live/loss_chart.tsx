// SPDX-License-Identifier: Apache-2.0
/**
 * loss_chart.tsx - the run's curves: loss with its checks and the line of pure guessing, other
 * runs beneath; or rate, gradient norm, speed.
 */
import { useMemo, useState } from 'preact/hooks';
import { Card } from '../parts/card';
import { Chart, joinTables, type Line, type Table } from '../parts/chart';
import { Check, Choice } from '../parts/fields';
import { count, loss, rate } from '../format';
import type { RunState } from '../run/controller';
import type { Curve } from '../run/curve';
import { controller, useRun } from '../state/run';
import { compared, curveWords, shelf, type ShelfRun } from '../state/shelf';
import { useStore } from '../store';
import { guessing, type Unit } from './words';

type What = 'loss' | 'lr' | 'gradNorm' | 'tokPerS';

const WHAT: readonly { value: What; label: string }[] = [
  { value: 'loss', label: 'Loss' },
  { value: 'lr', label: 'Rate' },
  { value: 'gradNorm', label: 'Gradient' },
  { value: 'tokPerS', label: 'Speed' },
];

export function LossChart() {
  const [what, setWhat] = useState<What>('loss');
  const s = useRun();
  const chosen = useStore(compared);
  const runs = useStore(shelf);
  const past = useMemo(
    () => (runs ?? []).filter((r) => r.id !== s.id && chosen.includes(r.id)),
    [runs, chosen, s.id],
  );
  return (
    <Card title="Curve" class="live-curve">
      <Choice label="What to draw" unlabelled value={what} options={WHAT} onChange={setWhat} />
      {what === 'loss' ? (
        <Losses s={s} past={past} />
      ) : (
        <Other what={what} s={s} />
      )}
    </Card>
  );
}

const CURVE_HEIGHT = 220;

const DASHES = [
  [6, 4],
  [2, 3],
  [10, 4, 2, 4],
  [1, 2],
];

/** From here on the first fall, which is the same for every text, is left out unless wanted. */
const ZOOM_AFTER = 200;
/** So much of the run so far is left out. */
const ZOOM_SHARE = 0.05;

function Losses({ s, past }: { s: RunState; past: readonly ShelfRun[] }) {
  const curve = controller.curve;
  const [whole, setWhole] = useState(false);
  const joined = useMemo(() => join(curve, past), [curve, s.curveTick, past]);
  const late = s.step >= ZOOM_AFTER;
  const from = late && !whole ? joined.x.findIndex((step) => step >= ZOOM_SHARE * s.step) : 0;
  const x = joined.x.slice(Math.max(0, from));
  const columns = joined.columns.map((c) => c.slice(Math.max(0, from)));
  const [raw = [], smooth = [], val = [], ...others] = columns;
  const lines: Line[] = [
    ...past.map((p, i): Line => ({
      name: curveWords(p),
      values: others[i] ?? [],
      colour: '--other',
      dash: DASHES[i % DASHES.length] ?? [],
    })),
    { name: 'each step', values: raw, colour: '--accent', width: 1, alpha: 0.25, silent: true },
    { name: 'practised', values: smooth, colour: '--accent', width: 2.25 },
    { name: 'new text', values: val, colour: '--ink', width: 1.75, dash: [5, 4], marked: true },
  ];
  return (
    <>
      <Chart
      title="Loss"
      summary={lossSummary(s)}
      xName="Step"
      x={x}
      lines={lines}
      format={loss}
      axisFormat={(v) => String(Number(v.toFixed(2)))}
      mark={{ value: guessing(s.vocab), name: `pure guessing, ln ${s.vocab}` }}
      height={CURVE_HEIGHT}
      rest={Math.max(0, x.indexOf(s.step))}
      tick={s.curveTick}
    />
      {late && (
        <Check label="With the first fall" checked={whole} onChange={setWhole} />
      )}
    </>
  );
}

/** One x axis for the run and the earlier ones; uPlot fills the gaps. */
function join(
  curve: Curve,
  past: readonly ShelfRun[],
): { x: number[]; columns: (number | null)[][] } {
  const own = [curve.loss, curve.smooth, curve.val];
  if (past.length === 0) return { x: curve.step, columns: own };
  const tables: Table[] = [
    [curve.step, ...own],
    ...past.map((p): Table => [p.meta.curve.steps, p.meta.curve.losses]),
  ];
  const [x = [], ...columns] = joinTables(tables);
  // join leaves undefined where a table has no such x: spanGaps wants null.
  const plain = columns.map((c) => Array.from(c, (v) => v ?? null));
  return { x: Array.from(x), columns: plain };
}

function lossSummary(s: RunState): string {
  if (s.step === 0) return 'Nothing has been drawn yet.';
  const val = s.val ? ` On text it has not seen it is ${loss(s.val.loss)}.` : '';
  return (
    `After ${count(s.step)} of ${count(s.total)} steps the loss is ${loss(s.loss)}; ` +
    `guessing is ${loss(guessing(s.vocab))}.${val}`
  );
}

function nameOf(what: Exclude<What, 'loss'>, unit: Unit): string {
  if (what === 'lr') return 'Learning rate';
  return what === 'gradNorm' ? 'Gradient norm' : `${unit}s a second`;
}

function Other({ what, s }: { what: Exclude<What, 'loss'>; s: RunState }) {
  const curve = controller.curve;
  const format =
    what === 'lr'
      ? rate
      : what === 'tokPerS'
        ? (v: number) => count(v)
        : (v: number) => v.toPrecision(3);
  const last = curve[what].at(-1);
  const name = nameOf(what, s.unit);
  return (
    <Chart
      title={name}
      summary={last == null ? 'No values yet.' : `It is ${format(last)} at step ${count(s.step)}.`}
      xName="Step"
      x={curve.step}
      lines={[{ name, values: curve[what], colour: '--accent', width: 1.5 }]}
      format={format}
      height={CURVE_HEIGHT}
      tick={s.curveTick}
    />
  );
}
