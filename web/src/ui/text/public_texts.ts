// SPDX-License-Identifier: Apache-2.0
/**
 * public_texts.ts - articles of Wikipedia by their titles, and data sets of Hugging Face by their names,
 * through the interfaces that both have for everybody (MediaWiki's extracts; the dataset viewer's rows).
 * Each comes with its licence. Nothing is sent but what was asked for.
 */
import { FetchProblem } from './fetch_text';

export interface PublicText {
  name: string;
  text: Blob;
  licence: string;
  /** Why there is less of it than was asked for; '' if there is not. */
  cut: string;
}

export interface PublicOptions {
  signal?: AbortSignal;
  onProgress?: (share: number) => void;
  /** For tests. */
  fetch?: typeof fetch;
  /** For tests: the host in place of the real ones. */
  host?: string;
}

/** A request that takes longer than this has failed. */
const WAIT_MS = 60_000;

/** The address with these parameters, as JSON; what goes wrong is said in a sentence. */
async function ask(
  base: string, parameters: Record<string, string>, o: PublicOptions, nothing: string,
): Promise<unknown> {
  const url = new URL(base);
  for (const [key, value] of Object.entries(parameters)) url.searchParams.set(key, value);
  const signal = AbortSignal.any([...(o.signal ? [o.signal] : []), AbortSignal.timeout(WAIT_MS)]);
  let answer: Response;
  try {
    answer = await (o.fetch ?? fetch)(url, {
      credentials: 'omit', referrerPolicy: 'no-referrer', signal,
    });
  } catch {
    throw new FetchProblem(o.signal?.aborted ? 'Stopped.' : `${url.host} cannot be reached.`);
  }
  if (answer.status === 429) {
    throw new FetchProblem(`${url.host} asks for patience (429). Try again in a minute.`);
  }
  if ([401, 403, 404, 422].includes(answer.status)) throw new FetchProblem(nothing);
  if (!answer.ok) throw new FetchProblem(`${url.host} refused with status ${answer.status}.`);
  try {
    return await answer.json();
  } catch {
    throw new FetchProblem(
      o.signal?.aborted ? 'Stopped.' : `${url.host} answered with something else than was asked for.`,
    );
  }
}

// ------------------------------------------------------------------------------------- Wikipedia

export const WIKIPEDIA_LICENCE = 'CC BY-SA 4.0, the authors of Wikipedia';
const MOST_ARTICLES = 50;

interface Extracts {
  query?: { pages?: { title?: string; extract?: string }[] };
}

/** "Fox", "de:Fuchs", several with semicolons or lines between them. */
export function titlesOf(typed: string): { language: string; title: string }[] {
  return typed
    .split(/[;\n]/)
    .map((part) => /^\s*(?:([a-z]{2,3}):)?\s*(.*?)\s*$/.exec(part))
    .flatMap((found) => (found?.[2] ? [{ language: found[1] ?? 'en', title: found[2] }] : []))
    .slice(0, MOST_ARTICLES);
}

export async function wikipedia(typed: string, o: PublicOptions = {}): Promise<PublicText> {
  const titles = titlesOf(typed);
  if (titles.length === 0) throw new FetchProblem('Type the title of an article, such as Fox.');
  const parts: string[] = [];
  const names: string[] = [];
  for (const { language, title } of titles) {
    const nothing = `Wikipedia (${language}) has no article “${title}”.`;
    const told = (await ask(
      `${o.host ?? `https://${language}.wikipedia.org`}/w/api.php`,
      {
        action: 'query', prop: 'extracts', explaintext: '1', redirects: '1', format: 'json',
        formatversion: '2', origin: '*', titles: title,
      },
      o,
      nothing,
    )) as Extracts;
    const page = told.query?.pages?.[0];
    if (!page?.extract) throw new FetchProblem(nothing);
    names.push(page.title ?? title);
    parts.push(`${page.title ?? title}\n\n${page.extract.trim()}\n\n\n`);
    o.onProgress?.(names.length / titles.length);
  }
  const more = names.length > 1 ? ` and ${names.length - 1} more` : '';
  return {
    name: `${names[0]}${more}, Wikipedia`,
    text: new Blob(parts),
    licence: WIKIPEDIA_LICENCE,
    cut: '',
  };
}

// ---------------------------------------------------------------------------------- Hugging Face

/** As many rows as the dataset viewer gives at once. */
const ROWS = 100;

interface Splits {
  splits?: { config?: string; split?: string }[];
}

interface Rows {
  features?: { name?: string; type?: { dtype?: string } }[];
  rows?: { row?: Record<string, unknown>; truncated_cells?: string[] }[];
  num_rows_total?: number;
}

interface Card {
  cardData?: { license?: unknown };
  tags?: unknown;
}

function licenceOf({ cardData, tags }: Card): string {
  const told = cardData?.license;
  if (typeof told === 'string') return told;
  if (Array.isArray(told)) return told.map(String).join(', ');
  const tag = (Array.isArray(tags) ? tags.map(String) : []).find((t) => t.startsWith('license:'));
  return tag?.slice(8) ?? 'its page names none';
}

/** The column with the text: by its usual names, or the first that holds words. */
function columnOf({ features = [] }: Rows): string | undefined {
  const words = features.filter((f) => f.type?.dtype === 'string').map((f) => f.name);
  return ['text', 'content', 'story', 'body'].find((name) => words.includes(name)) ?? words[0];
}

/** The first rows of a data set, of its training part if it has one, up to `bytes`. */
export async function dataset(
  typed: string, bytes: number, o: PublicOptions = {},
): Promise<PublicText> {
  const name = typed.trim().replace(/^https:\/\/huggingface\.co\/datasets\//, '').replace(/\/$/, '');
  if (!/^[\w.-]+(\/[\w.-]+)?$/.test(name)) {
    throw new FetchProblem('Type the name of a data set, such as owner/name.');
  }
  const viewer = o.host ?? 'https://datasets-server.huggingface.co';
  const nothing = `Hugging Face shows everybody no data set “${name}”.`;
  const card = (await ask(
    `${o.host ?? 'https://huggingface.co'}/api/datasets/${name}`, {}, o, nothing,
  )) as Card;
  const { splits = [] } = (await ask(
    `${viewer}/splits`, { dataset: name }, o, nothing,
  )) as Splits;
  const part = splits.find((s) => s.split === 'train') ?? splits[0];
  if (!part) throw new FetchProblem(nothing);
  const pieces: string[] = [];
  let size = 0;
  let column: string | undefined;
  let cut = '';
  for (let offset = 0, total = Infinity; size < bytes && offset < total; offset += ROWS) {
    const wanted = {
      dataset: name, config: part.config ?? 'default', split: part.split ?? 'train',
      offset: String(offset), length: String(ROWS),
    };
    let rows: Rows;
    try {
      rows = (await ask(`${viewer}/rows`, wanted, o, nothing)) as Rows;
    } catch (e) {
      if (size === 0 || o.signal?.aborted) throw e;
      // What came is kept: the next try would begin at the first row.
      cut = (e as Error).message;
      break;
    }
    column ??= columnOf(rows);
    if (column === undefined) throw new FetchProblem(`“${name}” has no column of text.`);
    if (!rows.rows?.length) break;
    for (const { row, truncated_cells: parts } of rows.rows) {
      // Of a cell that is too long for the answer there is the beginning alone.
      if (parts?.includes(column)) continue;
      const text = String(row?.[column] ?? '').trim();
      if (text === '' || size >= bytes) continue;
      pieces.push(`${text}\n\n`);
      size += new TextEncoder().encode(text).length + 2;
    }
    total = rows.num_rows_total ?? 0;
    o.onProgress?.(Math.min(1, Math.max(size / bytes, offset / total)));
  }
  if (size === 0) throw new FetchProblem(`“${name}” has no text in its first rows.`);
  return { name: `${name}, Hugging Face`, text: new Blob(pieces), licence: licenceOf(card), cut };
}
