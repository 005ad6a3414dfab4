// SPDX-License-Identifier: Apache-2.0
/**
 * hub.ts - models of Hugging Face by their names: what files a repository has, how large they are,
 * and the SHA-256 that each has to have. One request to its public API, which knows nothing of the
 * person but the name that was asked for.
 */
export const HUB = 'https://huggingface.co';

export interface HubFile {
  name: string;
  bytes: number;
  /** 64 hexadecimal digits; '' where the host tells none. */
  sha256: string;
  address: string;
}

export interface HubModel {
  repo: string;
  /** As the repository names it; '' if it does not. */
  licence: string;
  /** GGUF files in one piece, the smallest first. */
  files: HubFile[];
}

/** A model that is known to run here. What the host tells counts; these are for choosing. */
export interface Listed {
  title: string;
  repo: string;
  /** A part of the file's name. */
  file: string;
  bytes: number;
  licence: string;
  about: string;
}

export const CATALOGUE: readonly Listed[] = [
  {
    title: 'SmolLM2 135M', repo: 'bartowski/SmolLM2-135M-Instruct-GGUF', file: 'Q4_K_M',
    bytes: 105e6, licence: 'Apache 2.0', about: 'The smallest; on any phone.',
  },
  {
    title: 'SmolLM2 360M', repo: 'bartowski/SmolLM2-360M-Instruct-GGUF', file: 'Q4_K_M',
    bytes: 271e6, licence: 'Apache 2.0', about: 'Short answers in good English.',
  },
  {
    title: 'Gemma 3 270M', repo: 'ggml-org/gemma-3-270m-it-GGUF', file: 'Q8_0',
    bytes: 292e6, licence: 'Gemma', about: 'Many languages, for its size.',
  },
  {
    title: 'Qwen 2.5 0.5B', repo: 'Qwen/Qwen2.5-0.5B-Instruct-GGUF', file: 'q4_k_m',
    bytes: 491e6, licence: 'Apache 2.0', about: 'Languages, some code.',
  },
  {
    title: 'Qwen 3 0.6B', repo: 'Qwen/Qwen3-0.6B-GGUF', file: 'Q8_0',
    bytes: 639e6, licence: 'Apache 2.0', about: 'Thinks before it answers.',
  },
  {
    title: 'Llama 3.2 1B', repo: 'bartowski/Llama-3.2-1B-Instruct-GGUF', file: 'Q4_K_M',
    bytes: 808e6, licence: 'Llama 3.2', about: 'The best talker of these; wants a good machine.',
  },
  {
    title: 'MiniLM', repo: 'leliuga/all-MiniLM-L6-v2-GGUF', file: 'Q8_0',
    bytes: 25e6, licence: 'Apache 2.0', about: 'Writes nothing: it finds passages in your notes.',
  },
];

const NAME = /^[\w.-]+\/[\w.-]+$/;

/** Is this how Hugging Face names a model, rather than an address? */
export function isHubName(typed: string): boolean {
  return NAME.test(typed.trim());
}

/** The repository and the file of an address there; null for any other. */
export function hubPlace(url: URL, hub = HUB): { repo: string; file: string } | null {
  if (url.origin !== new URL(hub).origin) return null;
  const [, repo, file] = /^\/([^/]+\/[^/]+)\/resolve\/[^/]+\/(.+)$/.exec(url.pathname) ?? [];
  return repo && file ? { repo, file: decodeURIComponent(file) } : null;
}

interface Answer {
  cardData?: { license?: unknown };
  tags?: unknown;
  siblings?: { rfilename?: unknown; size?: unknown; lfs?: { sha256?: unknown; size?: unknown } }[];
}

function licenceOf({ cardData, tags }: Answer): string {
  if (typeof cardData?.license === 'string') return cardData.license;
  const list = Array.isArray(tags) ? tags.map(String) : [];
  return list.find((tag) => tag.startsWith('license:'))?.slice(8) ?? '';
}

/** A file that is one of several pieces cannot be opened, and one of a projector is no model. */
const NO_MODEL = /-\d{5}-of-\d{5}\.gguf$|mmproj/i;

const STATUSES: Record<number, string> = {
  401: 'has no model of this name that everybody may read',
  403: 'does not give this model to everybody. If it gives it to you, download it there and open the ' +
    'file here',
  404: 'has no model of this name',
  429: 'asks for patience: try again in a minute',
};

export interface HubOptions {
  signal?: AbortSignal;
  get?: typeof fetch;
  hub?: string;
}

export async function hubModel(repo: string, options: HubOptions = {}): Promise<HubModel> {
  const { signal, get = fetch, hub = HUB } = options;
  const name = repo.trim();
  if (!isHubName(name)) throw new Error(`Want a name such as owner/model, have “${name}”.`);
  const where = new URL(hub).host;
  let answer: Response;
  try {
    answer = await get(`${hub}/api/models/${name}?blobs=true`, {
      credentials: 'omit', referrerPolicy: 'no-referrer', signal: signal ?? null,
    });
  } catch {
    signal?.throwIfAborted();
    throw new Error(`${where} cannot be reached.`);
  }
  if (!answer.ok) {
    throw new Error(`${where} ${STATUSES[answer.status] ?? 'refused'} (${name}, ${answer.status}).`);
  }
  const told = (await answer.json().catch(() => ({}))) as Answer;
  const files = (Array.isArray(told.siblings) ? told.siblings : []).flatMap((one): HubFile[] => {
    const { rfilename: file, lfs } = one;
    const bytes = lfs?.size ?? one.size;
    if (typeof file !== 'string' || !/\.gguf$/i.test(file) || NO_MODEL.test(file)) return [];
    const path = file.split('/').map(encodeURIComponent).join('/');
    return [{
      name: file,
      bytes: typeof bytes === 'number' ? bytes : 0,
      sha256: typeof lfs?.sha256 === 'string' && /^[0-9a-f]{64}$/.test(lfs.sha256) ? lfs.sha256 : '',
      address: `${hub}/${name}/resolve/main/${path}`,
    }];
  });
  if (files.length === 0) throw new Error(`${name} has no GGUF file in one piece.`);
  return { repo: name, licence: licenceOf(told), files: files.sort((a, b) => a.bytes - b.bytes) };
}

/** The SHA-256 that a file at an address there has to have; '' where nobody tells. */
export async function hubSha256(url: URL, options: HubOptions = {}): Promise<string> {
  const place = hubPlace(url, options.hub);
  if (!place) return '';
  const found = await hubModel(place.repo, options).catch(() => null);
  return found?.files.find((file) => file.name === place.file)?.sha256 ?? '';
}
