// Serves the built window as the app does: the same files under the same content security policy.

import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

export const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src ipc: http://ipc.localhost; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };
const dist = fileURLToPath(new URL('../dist/', import.meta.url));

export async function serve() {
  const server = createServer(async (request, response) => {
    const path = normalize(new URL(request.url, 'http://x').pathname).replace(/^(\.\.[/\\])+/, '');
    try {
      const body = await readFile(join(dist, path === '/' ? 'index.html' : path));
      response.writeHead(200, {
        'content-type': TYPES[extname(path)] ?? (path === '/' ? 'text/html' : 'application/octet-stream'),
        'content-security-policy': CSP,
      });
      response.end(body);
    } catch {
      response.writeHead(path === '/favicon.ico' ? 204 : 404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() };
}
