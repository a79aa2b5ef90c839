/**
 * The page's files, as the build has made them: read once, at the first request for one, so that no path of a request
 * touches the disk.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { extname, join, sep } from 'node:path';
import type { Log } from '../core/log.js';
import { OF_THE_PAGE } from './headers.js';

interface PageFile {
  headers: Record<string, string>;
  /** By `Content-Encoding`; the file as it is has none. */
  forms: Map<Packing | null, Form>;
}

interface Form {
  bytes: Buffer;
  etag: string;
}

type Packing = 'br' | 'gzip';

/** Best first, with the ending of the packed file. */
const PACKINGS: [Packing, string][] = [
  ['br', '.br'],
  ['gzip', '.gz'],
];
const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.webp': 'image/webp',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.webmanifest': 'application/manifest+json',
  '.txt': 'text/plain; charset=utf-8',
};
const A_YEAR = 'public, max-age=31536000, immutable';
const HASHED = /^assets\/.+-[\w-]{8}\.\w+$/;

/** Paths of the page's files, there or not: `/`, `/icon.svg`, `/assets/…`. They hold no data and need no token. */
export function isOfThePage(path: string): boolean {
  return /^\/(?:assets\/[\w.-]+|[\w-]+\.\w+)?$/.test(path);
}

/** Never rejects: a page that cannot be read is one that is not there. */
export async function pageFrom(folder: string, log: Log): Promise<RequestListener> {
  const files = await readFiles(folder).catch((error) => {
    log.warn({ err: error }, 'page of the board cannot be read; run npm run build');
    return new Map<string, PageFile>();
  });
  return (request, response) => answer(files, request, response);
}

function answer(files: Map<string, PageFile>, request: IncomingMessage, response: ServerResponse): void {
  const [path = ''] = (request.url ?? '').split('?', 1);
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    refuse(response, 405, 'Here one may GET, HEAD.', { allow: 'GET, HEAD' });
    return;
  }
  const file = files.get(path);
  if (file === undefined) {
    refuse(response, 404, path === '/' ? 'The page is not built; run `npm run build`.' : 'not found');
    return;
  }
  const packing = packingFor(file, String(request.headers['accept-encoding'] ?? ''));
  const { bytes, etag } = file.forms.get(packing) as Form;
  const headers = { ...file.headers, etag, ...(packing && { 'content-encoding': packing }) };
  if (tagsIn(request.headers['if-none-match']).includes(etag)) {
    response.writeHead(304, headers).end();
    return;
  }
  response.writeHead(200, { ...headers, 'content-length': bytes.length });
  response.end(request.method === 'HEAD' ? undefined : bytes);
}

function refuse(
  response: ServerResponse,
  status: number,
  error: string,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify({ error }));
}

function packingFor({ forms }: PageFile, accepted: string): Packing | null {
  const refused = /;\s*q=0(?:\.0*)?$/;
  const names = accepted
    .toLowerCase()
    .split(',')
    .map((each) => each.trim())
    .filter((each) => !refused.test(each))
    .map((each) => each.split(';', 1)[0]?.trimEnd());
  const [best] = PACKINGS.find(([packing]) => names.includes(packing) && forms.has(packing)) ?? [null];
  return best;
}

function tagsIn(header: string | undefined): string[] {
  return (header ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''));
}

async function readFiles(folder: string): Promise<Map<string, PageFile>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const names = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(join(folder, '/').length));
  const endings = PACKINGS.map(([, ending]) => ending);
  const files = names.filter((name) => !endings.includes(extname(name)));
  return new Map(
    await Promise.all(
      files.map(async (name) => {
        const path = name.split(sep).join('/');
        const forms = new Map([
          [null, formOf(await readFile(join(folder, name)), '')] as [Packing | null, Form],
        ]);
        for (const [packing, ending] of PACKINGS) {
          if (!names.includes(`${name}${ending}`)) continue;
          forms.set(packing, formOf(await readFile(join(folder, `${name}${ending}`)), `-${packing}`));
        }
        const file = { headers: headersFor(path), forms };
        return [path === 'index.html' ? '/' : `/${path}`, file] as const;
      }),
    ),
  );
}

function headersFor(path: string): Record<string, string> {
  return {
    ...(path === 'index.html' && OF_THE_PAGE),
    'content-type': TYPES[extname(path)] ?? 'application/octet-stream',
    'cache-control': HASHED.test(path) ? A_YEAR : 'no-cache',
    vary: 'Accept-Encoding',
  };
}

function formOf(bytes: Buffer, mark: string): Form {
  const hash = createHash('sha256').update(bytes).digest('base64url').slice(0, 20);
  return { bytes, etag: `"${hash}${mark}"` };
}
