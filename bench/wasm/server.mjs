/*
 * server.mjs - the repository and a folder of built modules on 127.0.0.1, with the headers that give
 * a page shared memory: for engines in a browser. An empty page lies at /.
 */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';

const TYPES = { '.mjs': 'text/javascript', '.js': 'text/javascript', '.wasm': 'application/wasm' };
const ISOLATED = { 'Cross-Origin-Opener-Policy': 'same-origin',
                   'Cross-Origin-Embedder-Policy': 'require-corp' };

export function serve(root) {
    const server = createServer((request, response) => {
        const path = normalize(decodeURIComponent(new URL(request.url, 'http://x').pathname));
        const file = join(root, path), type = TYPES[extname(file)] ?? 'text/html';
        if (path === '/') return response.writeHead(200, { ...ISOLATED, 'Content-Type': type }).end();
        if (!existsSync(file) || !statSync(file).isFile()) return response.writeHead(404).end();
        return response.writeHead(200, { ...ISOLATED, 'Content-Type': type }).end(readFileSync(file));
    });
    return new Promise((resolve) => {
        server.listen(0, '127.0.0.1', () => {
            resolve({ url: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() });
        });
    });
}
