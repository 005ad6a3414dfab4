// SPDX-License-Identifier: Apache-2.0
/**
 * chart.tsx - how many times as fast as the scalar build: a bar for each build of each preset, with
 * its 95 % interval. The table under it holds the same numbers.
 */
import { Words } from '../parts/term';
import { BENCH_BUILDS, ratioToScalar } from './report';
import type { Entrant, PresetResult } from './run';

/** Ticks at 1, 2 or 5 times a power of ten, at most six of them. */
export function ticksUpTo(max: number): number[] {
  const power = 10 ** Math.floor(Math.log10(Math.max(max, 1e-9)));
  const step = [0.2, 0.5, 1, 2, 5].map((k) => k * power).find((s) => max / s <= 5) ?? 5 * power;
  return Array.from({ length: Math.floor(max / step + 1e-9) + 1 }, (_, i) =>
    Number((i * step).toFixed(6)),
  );
}

interface Bar {
  build: Entrant;
  median: number;
  low: number;
  high: number;
}

function barsOf(result: PresetResult): Bar[] {
  return BENCH_BUILDS.flatMap((build) => {
    const { median, low, high } = ratioToScalar(result, build);
    return Number.isFinite(median) ? [{ build, median, low, high }] : [];
  });
}

/** Colour by instruction set, pattern by threads. */
function barClass(build: Entrant): string {
  const [kind, threads] = build.split('-');
  return `bench-bar bench-bar-${kind}${threads ? ' bench-bar-mt' : ''}`;
}

export function RatioChart({ results }: { results: readonly PresetResult[] }) {
  const groups = results
    .map((r) => ({ preset: r.preset, bars: barsOf(r) }))
    .filter((g) => g.bars.length > 1);
  if (groups.length === 0) return null;
  const most = Math.max(
    ...groups.flatMap((g) => g.bars.map((b) => (Number.isFinite(b.high) ? b.high : b.median))),
  );
  const max = most * 1.08;
  const at = (x: number) => `${(100 * x) / max}%`;
  return (
    <figure
      class="bench-chart"
      aria-label="Speed relative to the scalar build; the table has the numbers"
    >
      {groups.map(({ preset, bars }) => (
        <div class="bench-group" key={preset} aria-hidden="true">
          <p class="bench-preset">{preset}</p>
          {bars.map((b) => (
            <div class="bench-line" key={b.build}>
              <span class="bench-build">{b.build}</span>
              <span class="bench-track">
                {ticksUpTo(max).map((t) => (
                  <span class="bench-grid" key={t} style={{ left: at(t) }} />
                ))}
                <span class={barClass(b.build)} style={{ width: at(b.median) }} />
                {Number.isFinite(b.low) && b.build !== 'scalar' && (
                  <span
                    class="bench-whisker"
                    style={{ left: at(b.low), width: at(b.high - b.low) }}
                  />
                )}
              </span>
              <span class="bench-number">{b.median.toFixed(b.median < 10 ? 2 : 1)} ×</span>
            </div>
          ))}
        </div>
      ))}
      <div class="bench-line bench-axis" aria-hidden="true">
        <span />
        <span class="bench-track">
          {ticksUpTo(max).map((t) => (
            <span class="bench-tick" key={t} style={{ left: at(t) }}>
              {t}
            </span>
          ))}
        </span>
        <span />
      </div>
      <figcaption class="quiet">
        <Words>
          Times as fast as the scalar build on one thread; the thin line is the 95 % interval.
        </Words>
      </figcaption>
    </figure>
  );
}
