// SPDX-License-Identifier: Apache-2.0
/**
 * report.ts - the plain block that a person copies into a message: who measured where, and
 *
 *     preset  steps  scalar  simd  relaxed  scalar-mt  simd-mt  relaxed-mt  webgpu     (ms a step)
 *
 * then ratios with their intervals, drift, notes. Fixed columns, no markup, no line over 100.
 */
import type { AdapterVerdict } from './adapter';
import { drift, type Entrant, type PresetResult } from './run';
import { median, pairedRatio, type Ratio } from './stats';

export const BENCH_BUILDS: readonly Entrant[] = [
  'scalar',
  'simd',
  'relaxed',
  'scalar-mt',
  'simd-mt',
  'relaxed-mt',
  'webgpu',
];

export interface BenchPlace {
  device: string;
  osBrowser: string;
  version: string;
  adapter: AdapterVerdict;
  notes: string[];
}

/** Milliseconds with three digits that mean something. */
export function formatMs(ms: number): string {
  if (!Number.isFinite(ms)) return '-';
  return ms >= 100 ? ms.toFixed(0) : ms >= 10 ? ms.toFixed(1) : ms.toFixed(2);
}

export function formatRatio(r: Ratio): string {
  const x = (v: number) => v.toFixed(2);
  if (!Number.isFinite(r.median)) return '-';
  return Number.isFinite(r.low)
    ? `${x(r.median)} [${x(r.low)}, ${x(r.high)}]`
    : `${x(r.median)} [?]`;
}

export function formatDrift(d: number): string {
  return !Number.isFinite(d) ? '-' : d === 0 ? '0' : d.toExponential(1);
}

/** How many times as fast as the scalar build; NaN where either has no numbers. */
export function ratioToScalar(result: PresetResult, build: Entrant): Ratio {
  const times = (name: Entrant) => result.rows.find((r) => r.build === name)?.ms ?? [];
  return pairedRatio(times('scalar'), times(build));
}

/** What stands in the webgpu column where there are no times. */
export function webgpuCell(adapter: AdapterVerdict): string {
  if (adapter.state === 'software') return 'refused: software GPU';
  return adapter.state === 'none' ? 'no adapter' : 'not measured';
}

/** First steps, which compile the shaders, of the presets that ran on the GPU. */
function firstSteps(results: readonly PresetResult[]): string[] {
  return results.flatMap((r) =>
    r.rows
      .filter((row) => row.build === 'webgpu' && Number.isFinite(row.firstMs) && !row.problem)
      .map((row) => `${r.preset}, webgpu: the first step took ${formatMs(row.firstMs)} ms`),
  );
}

/** Rows of cells, columns padded to their widest, first column to the left and the others right. */
function columns(rows: string[][]): string[] {
  const widths = (rows[0] ?? []).map((_, c) => Math.max(...rows.map((r) => r[c]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, c) => (c === 0 ? cell.padEnd(widths[c] ?? 0) : cell.padStart(widths[c] ?? 0)))
      .join('  ')
      .trimEnd(),
  );
}

export function reportText(place: BenchPlace, results: readonly PresetResult[]): string {
  const ran = results.filter((r) => r.steps > 0);
  const used = BENCH_BUILDS.filter((b) =>
    results.some((r) => r.rows.some((row) => row.build === b)),
  );
  const onGpu = used.includes('webgpu');
  const others = used.filter((b) => b !== 'scalar');
  const times = columns([
    ['preset', 'steps', ...used, ...(onGpu ? [] : ['webgpu'])],
    ...ran.map((r) => [
      r.preset,
      String(r.steps),
      ...used.map((b) => formatMs(median(r.rows.find((row) => row.build === b)?.ms ?? []))),
      ...(onGpu ? [] : [webgpuCell(place.adapter)]),
    ]),
  ]);
  const ratios = columns([
    ['preset', ...others],
    ...ran.map((r) => [r.preset, ...others.map((b) => formatRatio(ratioToScalar(r, b)))]),
  ]);
  const drifts = columns([
    ['preset', ...others],
    ...ran.map((r) => [r.preset, ...others.map((b) => formatDrift(drift(r, b)))]),
  ]);
  const threads = Math.max(1, ...results.flatMap((r) => r.rows.map((row) => row.threads)));
  const problems = results.flatMap((r) =>
    r.rows.filter((row) => row.problem).map((row) => `${r.preset}, ${row.build}: ${row.problem}`),
  );
  return [
    `tinygpt ${place.version} benchmark`,
    `device      ${place.device}`,
    `os/browser  ${place.osBrowser}`,
    `adapter     ${place.adapter.name}${place.adapter.state === 'software' ? ' (software)' : ''}`,
    `threads     ${threads} in the -mt builds`,
    '',
    'ms per training step, median',
    ...times,
    '',
    'ratio to scalar, paired turns: median [95 % interval]',
    ...ratios,
    '',
    'drift: |loss - scalar loss| / scalar loss after the same steps',
    ...drifts,
    '',
    'notes',
    ...[...place.notes, ...firstSteps(results), ...problems].map((line) => `- ${line}`),
  ].join('\n');
}

/** "Linux / Chromium 156" of what the browser tells about itself. */
export function osBrowser(
  userAgent: string,
  brands: readonly { brand: string; version: string }[],
  platform: string,
): string {
  const known =
    brands.find((b) => !/not.?a.?brand/i.test(b.brand) && b.brand !== 'Chromium') ??
    brands.find((b) => b.brand === 'Chromium');
  const patterns: [RegExp, string][] = [
    [/Firefox\/(\d+)/, 'Firefox'],
    [/Edg\/(\d+)/, 'Edge'],
    [/Chrome\/(\d+)/, 'Chromium'],
    [/Version\/(\d+).*Safari/, 'Safari'],
  ];
  const found = patterns.flatMap(([p, name]) => {
    const version = p.exec(userAgent)?.[1];
    return version ? [`${name} ${version}`] : [];
  });
  const browser = known ? `${known.brand} ${known.version}` : (found[0] ?? 'unknown browser');
  const systems: [RegExp, string][] = [
    [/Android [\d.]+/, 'Android'],
    [/iPhone|iPad/, 'iOS'],
    [/Windows/, 'Windows'],
    [/Mac OS X/, 'macOS'],
    [/CrOS/, 'ChromeOS'],
    [/Linux/, 'Linux'],
  ];
  const system = platform || systems.find(([p]) => p.test(userAgent))?.[1] || 'unknown system';
  return `${system} / ${browser}`;
}
