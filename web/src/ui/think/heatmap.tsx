// SPDX-License-Identifier: Apache-2.0
/**
 * heatmap.tsx - a square of weights 0..1 on a canvas, one pixel a weight, enlarged by the browser
 * without smoothing. Colours come from the stylesheet: `color` is the ink of weight 1 and
 * `background-color` that of weight 0, so light and dark need no code here but a redraw.
 */
import { useEffect, useRef, useState } from 'preact/hooks';
import { theme } from '../theme';
import { useStore } from '../store';

type Rgb = readonly [number, number, number];

/** "rgb(1, 2, 3)" or "color(srgb 0.1 0.2 0.3)" as three numbers of 0..255. */
export function parseRgb(css: string): Rgb {
  const numbers = (css.match(/-?[\d.]+(?:e-?\d+)?/g) ?? []).map(Number);
  const [r = 0, g = 0, b = 0] = numbers;
  return css.startsWith('color(') ? [255 * r, 255 * g, 255 * b] : [r, g, b];
}

/** Weights to pixels. The root spreads small weights, which most of them are. */
export function paint(
  weights: ArrayLike<number>,
  ground: Rgb,
  ink: Rgb,
): Uint8ClampedArray<ArrayBuffer> {
  const pixels = new Uint8ClampedArray(4 * weights.length);
  for (let i = 0; i < weights.length; i++) {
    const share = Math.sqrt(Math.min(1, Math.max(0, weights[i] as number)));
    for (let c = 0; c < 3; c++) {
      pixels[4 * i + c] =
        (ground[c] as number) + share * ((ink[c] as number) - (ground[c] as number));
    }
    pixels[4 * i + 3] = 255;
  }
  return pixels;
}

/** Grows when the colours of the page change by the system's choice. */
function useSystemScheme(): number {
  const [times, setTimes] = useState(0);
  useEffect(() => {
    const query = matchMedia('(prefers-color-scheme: dark)');
    const change = () => setTimes((n) => n + 1);
    query.addEventListener('change', change);
    return () => query.removeEventListener('change', change);
  }, []);
  return times;
}

export function Heatmap({
  weights,
  size,
  class: name,
}: {
  weights: Float32Array;
  /** Rows and columns. */
  size: number;
  class?: string;
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const chosen = useStore(theme);
  const system = useSystemScheme();
  useEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (!canvas.current || !context || size === 0) return;
    const style = getComputedStyle(canvas.current);
    const pixels = paint(weights, parseRgb(style.backgroundColor), parseRgb(style.color));
    context.putImageData(new ImageData(pixels, size, size), 0, 0);
  }, [weights, size, chosen, system]);
  return (
    <canvas
      ref={canvas}
      class={name ? `think-map ${name}` : 'think-map'}
      width={size}
      height={size}
      aria-hidden="true"
    />
  );
}
