// SPDX-License-Identifier: Apache-2.0
/** model_file.ts - what a file is before the engine looks at it, and what a download is called. */
import { looksLikeHtml } from '../text/sniff';

/** A third-party model up to here may be opened beside what is trained; a larger one under Chat alone,
 *  which has a memory of its own and tells before what a model takes. */
export const BESIDE_BYTES = 400e6;

/** Whether a dropped file is a model rather than a text. */
export function isModelName(name: string): boolean {
  return /\.(tinygpt|safetensors)(\.(best|prev))?$/i.test(name);
}

/** Whether it is a third-party model, for Chat. */
export function isChatModelName(name: string): boolean {
  return /\.gguf$/i.test(name);
}

/** A sentence if the file cannot be a model; '' if the engine should have a look. */
export function modelFileProblem(name: string, head: Uint8Array, size: number): string {
  if (size === 0) return `${name} is empty.`;
  if (looksLikeHtml(head)) {
    return (
      `${name} is a web page, not a model. The address it came from answered with an ` +
      'error or login page; download it again.'
    );
  }
  const start = new TextDecoder('latin1').decode(head.subarray(0, 8));
  if (start.startsWith('GGUF') && size > BESIDE_BYTES) {
    return `${name} is a large third-party model: add it under Chat, where it goes on with texts, too.`;
  }
  if (start.startsWith('PK') && !/\.zip$/i.test(name)) {
    return `${name} is a ZIP archive. Unpack it first.`;
  }
  return '';
}

export interface NameParts {
  base: string;
  step: number;
  kind: string;
  extension: string;
}

/** `tinygpt-small-1500.tinygpt`, `tinygpt-small-1500-int4.tinygpt`. */
export function fileName(p: NameParts): string {
  const base = p.base
    .replace(/\.(tinygpt|safetensors|best|prev)/gi, '')
    .replace(/^tinygpt-/, '')
    .replace(/-\d+$/, '')
    .replace(/[^\p{L}\p{N}._-]+/gu, '-')
    .replace(/^[-.]+|[-.]+$/g, '')
    .slice(0, 40);
  const suffix: Record<string, string> = {
    run: '',
    last: '',
    v3: '-weights',
    'v2-f32': '-v2',
    'v2-f16': '-f16',
    'v2-int4': '-int4',
    safetensors: '',
    gguf: '',
    best: '-best',
  };
  return `tinygpt-${base || 'model'}-${p.step}${suffix[p.kind] ?? ''}.${p.extension}`;
}
