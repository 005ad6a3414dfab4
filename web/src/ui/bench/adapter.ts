/**
 * adapter.ts - which GPU a browser offers, and whether it is one. A CPU that plays a GPU
 * (SwiftShader, llvmpipe and lavapipe, WARP) is orders of magnitude slower than the WASM build: to
 * time it as "WebGPU" would be a lie, so it is named and refused.
 */

/** GPUAdapterInfo and GPUAdapter.isFallbackAdapter, as far as a browser fills them in. */
export interface AdapterFacts {
  vendor?: string;
  architecture?: string;
  device?: string;
  description?: string;
  isFallbackAdapter?: boolean;
}

export interface AdapterVerdict {
  /** The adapter's own words, or "none". */
  name: string;
  state: 'none' | 'software' | 'hardware';
  /** One sentence. */
  note: string;
}

const SOFTWARE: readonly (readonly [RegExp, string])[] = [
  [/swiftshader/i, 'SwiftShader'],
  [/llvmpipe/i, 'llvmpipe'],
  [/lavapipe/i, 'lavapipe'],
  // "Microsoft Basic Render Driver" is the name under which WARP is listed.
  [/\bwarp\b|basic render/i, 'WARP'],
  [/\bsoftware\b|\bcpu\b/i, 'a software renderer'],
];

/** The software renderer that this adapter is, or ''. */
export function softwareName(facts: AdapterFacts): string {
  const words = [facts.vendor, facts.architecture, facts.device, facts.description].join(' ');
  for (const [pattern, name] of SOFTWARE) if (pattern.test(words)) return name;
  return facts.isFallbackAdapter ? 'a fallback adapter' : '';
}

export function judgeAdapter(facts: AdapterFacts | null): AdapterVerdict {
  if (!facts)
    return { name: 'none', state: 'none', note: 'This browser offers no WebGPU adapter.' };
  const parts = [facts.description, facts.vendor, facts.architecture, facts.device].filter(Boolean);
  const name = [...new Set(parts)].join(' ') || 'unnamed';
  const software = softwareName(facts);
  if (software) {
    return {
      name,
      state: 'software',
      note: `The adapter is software (${software}): it runs on the CPU and is not timed as a GPU.`,
    };
  }
  return { name, state: 'hardware', note: `WebGPU adapter: ${name}.` };
}

/** Asks the browser; never throws. */
export async function findAdapter(): Promise<AdapterVerdict> {
  const gpu = typeof navigator === 'undefined' ? undefined : navigator.gpu;
  if (!gpu) return judgeAdapter(null);
  try {
    const adapter = await gpu.requestAdapter();
    if (!adapter) return judgeAdapter(null);
    const { vendor, architecture, device, description } = adapter.info;
    // Older browsers have it on the adapter, newer ones in its info.
    const fallback = [adapter, adapter.info].some(
      (o) => (o as { isFallbackAdapter?: boolean }).isFallbackAdapter === true,
    );
    return judgeAdapter({ vendor, architecture, device, description, isFallbackAdapter: fallback });
  } catch {
    return judgeAdapter(null);
  }
}
