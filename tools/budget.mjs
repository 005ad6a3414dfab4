// SPDX-License-Identifier: Apache-2.0
/*
 * budget.mjs FOLDER - is the built page within its budget? Scripts of all views and workers together
 * below 120,000 bytes as `tinygpt serve` sends them, by brotli, and below 131,000 for hosts that
 * know gzip alone; by gzip, those of Chat, which nobody loads who does not open it, below 18,000;
 * every module below 370,000. Each FILE.br must hold what FILE does.
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { brotliDecompressSync } from 'node:zlib';

const BROTLI_BYTES = 120_000, SCRIPTS_BYTES = 131_000, CHAT_SCRIPTS_BYTES = 18_000,
      MODULE_BYTES = 370_000;
const folder = process.argv[2] ?? 'web/dist';

const compressed = (path) =>
    execFileSync('gzip', ['-9c', path], { maxBuffer: 1 << 26 }).length;
const sizes = readdirSync(folder, { recursive: true })
    .filter((name) => /\.(js|wasm)$/.test(name))
    .map((name) => [name, compressed(`${folder}/${name}`)])
    .sort((a, b) => b[1] - a[1]);
const isOfChat = ([name]) => /(^|\/)(chat_view|models|models\.worker)-[^/]*\.js$/.test(name);
const allScripts = sizes.filter(([name]) => name.endsWith('.js'));
const scripts = allScripts.filter((script) => !isOfChat(script));
const ofChat = allScripts.filter(isOfChat);
const modules = sizes.filter(([name]) => name.endsWith('.wasm'));
const total = (files) => files.reduce((bytes, [, n]) => bytes + n, 0);
const sum = total(scripts), chat = total(ofChat);

const faults = modules.filter((module) => module[1] > MODULE_BYTES)
    .map((module) => `${module[0]}: ${module[1]} bytes, want at most ${MODULE_BYTES}`);
if (sum > SCRIPTS_BYTES) {
    faults.push(`scripts: ${sum} bytes, want at most ${SCRIPTS_BYTES}; the largest:`);
    faults.push(...scripts.slice(0, 8).map(([name, n]) => `  ${n} ${name}`));
}
let brotli = 0;
for (const [name] of scripts) {
    const packed = readFileSync(`${folder}/${name}.br`);
    brotli += packed.length;
    if (!brotliDecompressSync(packed).equals(readFileSync(`${folder}/${name}`)))
        faults.push(`${name}.br: want what ${name} holds`);
}
if (brotli > BROTLI_BYTES)
    faults.push(`scripts: ${brotli} bytes by brotli, want at most ${BROTLI_BYTES}`);
if (chat > CHAT_SCRIPTS_BYTES || ofChat.length === 0) {
    faults.push(`scripts of Chat: ${chat} bytes, want some and at most ${CHAT_SCRIPTS_BYTES}`);
}
if (scripts.length === 0 || modules.length === 0) faults.push(`${folder}: no page is built there`);
console.log(`compressed: ${scripts.length} scripts ${sum} of ${SCRIPTS_BYTES}, ` +
            `by brotli ${brotli} of ${BROTLI_BYTES}, ` +
            `of Chat ${chat} of ${CHAT_SCRIPTS_BYTES}, largest module ${modules[0]?.[1]} of ${MODULE_BYTES}`);
for (const fault of faults) console.log(fault);
process.exit(faults.length ? 1 : 0);
