/** Artifacts over HTTP: what agents wrote, which nobody's browser is to run. */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { z } from 'zod';
import type { Artifacts, OpenedArtifact } from '../core/artifacts.js';
import { type Operation, operation, refusal, refused } from './operation.js';
import { streamOf } from './stream.js';
import { ArtifactId } from './task-schemas.js';

const PIECE_BYTES = 65_536;
const MIME = /^[a-z0-9][a-z0-9!#$&^_.+-]*\/[a-z0-9][a-z0-9!#$&^_.+-]*$/i;
/** What a browser may show: it runs none of them. A drawing in SVG is a program. */
const SHOWN = /^(text\/plain|image\/(?!svg)[a-z0-9.+-]+)$/i;

export function artifactOperations(artifacts: Artifacts): Operation[] {
  return [
    operation({
      ...{ method: 'GET', path: '/api/artifacts/{task}/{id}', says: 'A file that came out of a task.' },
      parameters: z.object({ task: ArtifactId, id: ArtifactId }),
      answers: {
        200: {
          ...{
            says: 'Its bytes, with its type; an attachment, but for pictures and plain text.',
            media: '*/*',
          },
          headers: { 'Content-Disposition': '`inline` or `attachment`, with its name.' },
        },
        404: refusal('There is no such artifact.'),
      },
      async run({ parameters: { task, id } }) {
        const found = await artifacts.find(task, id);
        const handle = found === null ? null : await opened(found.path);
        if (found === null || handle === null) return refused(404, 'There is no such artifact.');
        // Opened again when it is read: nobody may come back for what is open now.
        const { size } = await handle.stat().finally(() => handle.close());
        return {
          ...{ status: 200, content: streamOf(() => bytesOf(found.path, size)) },
          headers: { ...headersOf(found), 'Content-Length': String(size) },
        };
      },
    }),
  ];
}

function headersOf({ type, path }: OpenedArtifact): Record<string, string> {
  const plain = MIME.test(type) ? type.toLowerCase() : 'application/octet-stream';
  const name = path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1);
  const how = SHOWN.test(plain) ? 'inline' : 'attachment';
  return {
    'Content-Type': plain.startsWith('text/') ? `${plain}; charset=utf-8` : plain,
    'Content-Disposition': `${how}; filename="${name.replace(/[^A-Za-z0-9._-]/g, '_')}"`,
    'X-Content-Type-Options': 'nosniff',
    // Of no origin, and nothing in it runs, wherever it is shown.
    'Content-Security-Policy': "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:",
    'Cache-Control': 'private, no-cache',
  };
}

/** null: it is gone, or is no file any more. No link is followed, and no pipe waited for. */
async function opened(path: string): Promise<FileHandle | null> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  try {
    const handle = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if ((await handle.stat()).isFile()) return handle;
    await handle.close();
    return null;
  } catch (error) {
    if (['ENOENT', 'ELOOP', 'ENOTDIR', 'ENXIO'].includes((error as NodeJS.ErrnoException).code ?? ''))
      return null;
    throw error;
  }
}

async function* bytesOf(path: string, size: number): AsyncGenerator<Uint8Array> {
  const handle = await opened(path);
  if (handle === null) throw new Error(`${path} went away while it was sent`);
  try {
    for (let at = 0; at < size; ) {
      const { bytesRead, buffer } = await handle.read(
        Buffer.alloc(Math.min(PIECE_BYTES, size - at)),
        0,
        null,
        at,
      );
      if (bytesRead === 0) throw new Error(`${path} became shorter while it was sent`);
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await handle.close();
  }
}
