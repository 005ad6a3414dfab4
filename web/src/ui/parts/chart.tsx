// SPDX-License-Identifier: Apache-2.0
/**
 * chart.tsx - lines over a shared x axis, drawn by uPlot on a canvas.
 *
 * For those who do not see it: the figure has a summary in words, and a table with up to 12 rows
 * behind a disclosure. Arrow keys move the cursor; the values under it stand in a line above.
 * A canvas knows no custom properties: colours are resolved when the chart is made, and it is made
 * anew when the theme changes.
 */
import './locale'; // before uPlot, which nothing else imports
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { WHOLE_STRIDES } from '../format';
import { theme } from '../theme';
import { keys } from '../shortcuts';
import { useStore } from '../store';
import './chart.css';

/** An x axis, and values over it. */
export type Table = uPlot.AlignedData;

/** One x axis for several tables; where one has no value it is empty. */
export const joinTables: (tables: Table[]) => Table = uPlot.join;

export interface Line {
  name: string;
  values: readonly (number | null)[];
  /** A custom property of tokens.css, such as `--accent`. */
  colour: string;
  width?: number;
  dash?: number[];
  /** 0..1. */
  alpha?: number;
  /** Points are marked: for few values with gaps between. */
  marked?: boolean;
  /** Not named in the legend, the readout and the table. */
  silent?: boolean;
}

export interface ChartProps {
  title: string;
  /** What the curve shows, in one or two sentences. */
  summary: string;
  xName: string;
  x: readonly number[];
  lines: readonly Line[];
  format: (value: number) => string;
  /** For the axis, if it is to be shorter. */
  axisFormat?: (value: number) => string;
  /** A horizontal line with a name, drawn if it lies within the values. */
  mark?: { value: number; name: string };
  height?: number;
  /** The point that the readout shows while nobody points anywhere; the last one if absent. */
  rest?: number;
  /** Grows when the values have changed in place. */
  tick?: number;
}

export function Chart(p: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [at, setAt] = useState<number | null>(null);
  const chosen = useStore(theme);
  const system = useSystemTheme();
  const caption = useId();
  const shape = p.lines.map((l) => `${l.name}/${l.colour}/${l.dash?.join('.') ?? ''}`).join('|');
  const latest = useRef(p);
  latest.current = p;

  useEffect(() => {
    const div = place.current;
    if (!div) return;
    const made = new uPlot(options(latest, div, setAt), dataOf(latest.current), div);
    plot.current = made;
    const watch = new ResizeObserver(() => {
      const width = Math.floor(div.clientWidth);
      if (width > 0 && width !== made.width) made.setSize({ width, height: made.height });
    });
    watch.observe(div);
    return () => {
      watch.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape, chosen, system, p.height]);

  useEffect(() => {
    plot.current?.setData(dataOf(p));
  }, [p.x, p.tick]);

  const named = p.lines.filter((l) => !l.silent);
  const index = at ?? p.rest ?? p.x.length - 1;
  const shown = named
    .map((l) => ({ line: l, value: valueAt(l.values, index) }))
    .filter((e): e is { line: Line; value: number } => e.value !== null);
  /** The cursor moves by a sixtieth of the curve. */
  const go = (by: number) => {
    const stride = Math.max(1, Math.round(p.x.length / 60));
    const to = Math.min(p.x.length - 1, Math.max(0, index + by * stride));
    const u = plot.current;
    u?.setCursor({ left: u.valToPos(p.x[to] ?? 0, 'x'), top: u.bbox.height / 4 });
  };
  return (
    <figure class="chart" aria-labelledby={caption}>
      <figcaption id={caption} class="unseen">
        {p.title}. {p.summary}
      </figcaption>
      <div class="chart-legend" aria-hidden="true">
        <span class="chart-at">
          {p.x.length > 0 ? `${p.xName} ${(p.x[index] ?? 0).toLocaleString('en-US')}` : ''}
        </span>
        {shown.map(({ line, value }) => (
          <span key={line.name}>
            <Swatch line={line} />
            {line.name} <b>{p.format(value)}</b>
          </span>
        ))}
      </div>
      <div
        class="chart-place"
        ref={place}
        role="img"
        aria-label={`${p.title}. ${p.summary}`}
        tabIndex={0}
        onKeyDown={keys('picture', { left: () => go(-1), right: () => go(1) })}
      />
      {p.x.length > 1 && <Rows {...p} lines={named} />}
    </figure>
  );
}

/** A step may have no validation: the newest one up to there counts. */
function valueAt(values: readonly (number | null)[], index: number): number | null {
  for (let i = Math.min(index, values.length - 1); i >= 0 && i > index - 500; i--) {
    const value = values[i];
    if (value != null && Number.isFinite(value)) return value;
  }
  return null;
}

function Swatch({ line }: { line: Line }) {
  return (
    <svg width="18" height="8" viewBox="0 0 18 8" aria-hidden="true">
      <line
        x1="0"
        x2="18"
        y1="4"
        y2="4"
        stroke={`var(${line.colour})`}
        stroke-width={line.width ?? 1.5}
        stroke-dasharray={line.dash?.join(' ')}
        opacity={line.alpha ?? 1}
      />
    </svg>
  );
}

function Rows(p: ChartProps) {
  const rows: number[] = [];
  const n = Math.min(12, p.x.length);
  for (let i = 0; i < n; i++) rows.push(Math.round((i * (p.x.length - 1)) / Math.max(1, n - 1)));
  return (
    <details class="disclosure chart-table">
      <summary>As a table</summary>
      <div class="table-wrap">
        <table class="table">
          <thead>
            <tr>
              <th scope="col">{p.xName}</th>
              {p.lines.map((l) => (
                <th scope="col" class="right" key={l.name}>
                  {l.name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {[...new Set(rows)].map((i) => (
              <tr key={i}>
                <th scope="row">{(p.x[i] ?? 0).toLocaleString('en-US')}</th>
                {p.lines.map((l) => {
                  const value = valueAt(l.values, i);
                  return (
                    <td class="right" key={l.name}>
                      {value === null ? '–' : p.format(value)}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

function dataOf(p: ChartProps): Table {
  return [p.x as number[], ...p.lines.map((l) => l.values as (number | null)[])];
}

/** A custom property as a colour that a canvas understands. */
export function inkOf(property: string, element: Element): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${property})`;
  element.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

function options(
  latest: { current: ChartProps },
  div: HTMLDivElement,
  onCursor: (index: number | null) => void,
): uPlot.Options {
  const p = latest.current;
  const faint = inkOf('--ink-3', div);
  const line = inkOf('--line', div);
  const font = `12px ${getComputedStyle(div).fontFamily}`;
  const axis = { stroke: faint, font, grid: { stroke: line, width: 1 }, ticks: { show: false } };
  return {
    width: Math.max(200, Math.floor(div.clientWidth)),
    height: p.height ?? 280,
    padding: [10, 20, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 7 }, drag: { x: false, y: false } },
    scales: { x: { time: false, range: (_u, min, max) => [min, Math.max(max, min + 1)] } },
    axes: [
      {
        ...axis,
        size: 30,
        gap: 6,
        grid: { show: false },
        incrs: WHOLE_STRIDES,
        values: (_u, ticks) => ticks.map(shortStep),
      },
      {
        ...axis,
        size: 54,
        gap: 6,
        values: (_u, ticks) => ticks.map(latest.current.axisFormat ?? latest.current.format),
      },
    ],
    series: [
      {},
      ...p.lines.map((l): uPlot.Series => ({
        stroke: inkOf(l.colour, div),
        width: l.width ?? 1.5,
        alpha: l.alpha ?? 1,
        spanGaps: true,
        points: { show: Boolean(l.marked), size: 5, fill: inkOf('--surface', div) },
        ...(l.dash ? { dash: l.dash } : {}),
      })),
    ],
    hooks: {
      setCursor: [(u) => onCursor(u.cursor.idx ?? null)],
      draw: [(u) => drawMark(u, latest.current.mark, faint, font)],
    },
  };
}

function shortStep(v: number): string {
  return v >= 10_000 ? `${v / 1000}k` : v.toLocaleString('en-US');
}

function drawMark(u: uPlot, mark: ChartProps['mark'], colour: string, font: string): void {
  const { min, max } = u.scales['y'] ?? {};
  if (!mark || min == null || max == null || mark.value < min || mark.value > max) return;
  const y = Math.round(u.valToPos(mark.value, 'y', true));
  const { ctx, bbox } = u;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.fillStyle = colour;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([2 * devicePixelRatio, 4 * devicePixelRatio]);
  ctx.beginPath();
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  ctx.font = font.replace('12px', `${12 * devicePixelRatio}px`);
  ctx.textAlign = 'right';
  ctx.textBaseline = 'top';
  ctx.fillText(mark.name, bbox.left + bbox.width, y + 4 * devicePixelRatio);
  ctx.restore();
}

function useSystemTheme(): boolean {
  const [dark, setDark] = useState(() => matchMedia('(prefers-color-scheme: dark)').matches);
  useEffect(() => {
    const query = matchMedia('(prefers-color-scheme: dark)');
    const follow = () => setDark(query.matches);
    query.addEventListener('change', follow);
    return () => query.removeEventListener('change', follow);
  }, []);
  return dark;
}
