// SPDX-License-Identifier: Apache-2.0
/**
 * software.ts - CPUs that play a GPU (SwiftShader, llvmpipe and lavapipe, WARP). They are good for
 * tests, and orders of magnitude slower than the WASM build: to time one as "WebGPU" would be a
 * lie.
 */

/** GPUAdapterInfo and GPUAdapter.isFallbackAdapter, as far as a browser fills them in. */
export interface AdapterFacts {
  vendor?: string;
  architecture?: string;
  device?: string;
  description?: string;
  isFallbackAdapter?: boolean;
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
