// SPDX-License-Identifier: Apache-2.0
/**
 * adapter.ts - which GPU a browser offers, and whether it is one: a CPU that plays a GPU is named
 * and refused.
 */
import { type AdapterFacts, softwareName } from '../../lib/software';

export interface AdapterVerdict {
  /** The adapter's own words, or "none". */
  name: string;
  state: 'none' | 'software' | 'hardware';
  /** One sentence. */
  note: string;
}

/** `lacking`: the browser has no WebGPU at all, so it was not asked for an adapter. */
export function judgeAdapter(facts: AdapterFacts | null, lacking = false): AdapterVerdict {
  if (!facts) {
    const note = lacking
      ? 'This browser has no WebGPU on this machine.'
      : 'This browser has WebGPU, and no graphics card for it.';
    return { name: 'none', state: 'none', note };
  }
  const parts = [facts.description, facts.vendor, facts.architecture, facts.device].filter(Boolean);
  const name = [...new Set(parts)].join(' ') || 'unnamed';
  const software = softwareName(facts);
  if (software) {
    return {
      name,
      state: 'software',
      note: `This browser’s graphics card is software (${software}): the CPU plays it, so it is not timed.`,
    };
  }
  return { name, state: 'hardware', note: `WebGPU adapter: ${name}.` };
}

/** Asks the browser; never throws. */
export async function findAdapter(): Promise<AdapterVerdict> {
  const gpu = typeof navigator === 'undefined' ? undefined : navigator.gpu;
  if (!gpu) return judgeAdapter(null, true);
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
