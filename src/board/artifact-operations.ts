/** Artifacts over HTTP: what agents wrote, which nobody's browser is to run. */
import * as z from 'zod';
import type { Artifacts, FoundArtifact } from '../core/artifacts.js';
import { type Operation, operation, refusal, refused } from './operation.js';
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
        if (found === null) return refused(404, 'There is no such artifact.');
        return {
          ...{ status: 200, content: () => bytesOf(artifacts, task, id, found.bytes) },
          headers: { ...headersOf(found), 'Content-Length': String(found.bytes) },
        };
      },
    }),
  ];
}

function headersOf({ type, name }: FoundArtifact): Record<string, string> {
  const [bare = ''] = type.toLowerCase().split(';', 1);
  const plain = MIME.test(bare.trimEnd()) ? bare.trimEnd() : 'application/octet-stream';
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

/** Opened only now: whoever asks for the head alone never reads. Once open it is that file, whatever is put in its place. */
async function* bytesOf(
  artifacts: Artifacts,
  task: string,
  id: string,
  size: number,
): AsyncGenerator<Uint8Array> {
  const opened = await artifacts.open(task, id);
  if (opened === null) throw new Error(`artifact ${task}/${id} went away before it was sent`);
  const { handle } = opened;
  try {
    for (let at = 0; at < size; ) {
      const piece = Buffer.alloc(Math.min(PIECE_BYTES, size - at));
      const { bytesRead } = await handle.read(piece, 0, piece.length, at);
      if (bytesRead === 0) throw new Error(`artifact ${task}/${id} became shorter while it was sent`);
      at += bytesRead;
      yield piece.subarray(0, bytesRead);
    }
  } finally {
    await handle.close();
  }
}
