// SPDX-License-Identifier: Apache-2.0
/**
 * raw_chrome.ts - Chromium without Playwright, which keeps every page visible: two tabs, of which
 * one can be hidden. Speaks the DevTools protocol over the browser's own pipe (messages of JSON
 * with a zero byte behind each).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';

type Json = Record<string, unknown>;

export class RawChrome {
  readonly #profile = mkdtempSync(join(tmpdir(), 'tinygpt-raw-'));
  readonly #child: ChildProcess;
  readonly #waiting = new Map<
    number,
    { resolve: (result: Json) => void; reject: (e: Error) => void }
  >();
  /** What any page's console said as an error. */
  readonly errors: string[] = [];
  #lastId = 0;
  #rest = '';

  constructor() {
    this.#child = spawn(
      process.env['TG_CHROMIUM'] ?? '/usr/bin/chromium',
      [
        '--headless=new',
        '--no-sandbox',
        '--no-first-run',
        '--disable-gpu',
        '--remote-debugging-pipe',
        `--user-data-dir=${this.#profile}`,
        'about:blank',
      ],
      { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] },
    );
    (this.#child.stdio[4] as Readable)
      .setEncoding('utf8')
      .on('data', (text: string) => this.#take(text));
  }

  #take(text: string): void {
    const parts = (this.#rest + text).split('\0');
    this.#rest = parts.pop() ?? '';
    for (const part of parts) {
      const message = JSON.parse(part) as {
        id?: number;
        result?: Json;
        error?: { message: string };
        method?: string;
        params?: Json;
      };
      const caller = message.id === undefined ? undefined : this.#waiting.get(message.id);
      if (message.id !== undefined) this.#waiting.delete(message.id);
      if (message.error) caller?.reject(new Error(message.error.message));
      else caller?.resolve(message.result ?? {});
      if (message.method === 'Runtime.exceptionThrown')
        this.errors.push(JSON.stringify(message.params));
      if (message.method === 'Runtime.consoleAPICalled' && message.params?.['type'] === 'error') {
        this.errors.push(JSON.stringify(message.params['args']));
      }
    }
  }

  send(method: string, params: Json = {}, sessionId?: string): Promise<Json> {
    const id = ++this.#lastId;
    (this.#child.stdio[3] as Writable).write(
      `${JSON.stringify({ id, method, params, sessionId })}\0`,
    );
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  async tab(url: string): Promise<RawTab> {
    const { targetId } = await this.send('Target.createTarget', { url });
    const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true });
    await this.send('Runtime.enable', {}, sessionId as string);
    return new RawTab(this, targetId as string, sessionId as string);
  }

  async close(): Promise<void> {
    const gone = once(this.#child, 'exit');
    await this.send('Browser.close').catch(() => {});
    await gone;
    rmSync(this.#profile, { recursive: true, force: true });
  }
}

export class RawTab {
  readonly #chrome: RawChrome;
  readonly #target: string;
  readonly #session: string;

  constructor(chrome: RawChrome, target: string, session: string) {
    this.#chrome = chrome;
    this.#target = target;
    this.#session = session;
  }

  /** The value of an expression, which may be a promise. */
  async evaluate<T>(expression: string): Promise<T> {
    const answer = (await this.#chrome.send(
      'Runtime.evaluate',
      { expression, awaitPromise: true, returnByValue: true },
      this.#session,
    )) as { result: { value: T }; exceptionDetails?: { text: string } };
    if (answer.exceptionDetails) throw new Error(`${expression}: ${answer.exceptionDetails.text}`);
    return answer.result.value;
  }

  /** Puts this tab in front; the one that was there is hidden. */
  async show(): Promise<void> {
    await this.#chrome.send('Target.activateTarget', { targetId: this.#target });
  }
}
