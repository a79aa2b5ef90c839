/** Files over HTTP: the workspace's plan and memory, and artifacts, which a browser must never execute. */
import { z } from '@hono/zod-openapi';
import type { Artifacts } from '../core/artifacts.js';
import type { Log } from '../core/log.js';
import { planText } from '../core/task.js';
import type { Workspace, WorkspaceFile } from '../core/workspace.js';
import {
  type BoardApi,
  json,
  jsonBody,
  media,
  readBody,
  refusal,
  reply,
  replyWith,
  route,
  streamOf,
} from './api.js';
import { ArtifactId, StructuredPlan } from './schemas.js';

const ETAG = { ETag: 'Changes with the content.' };
const Content = z.strictObject({ content: z.string() });

export function addWorkspace(api: BoardApi, workspace: Workspace): void {
  addFile(api, workspace, 'plan', z.strictObject({ content: z.union([z.string(), StructuredPlan]) }));
  addFile(api, workspace, 'memory', Content);
}

function addFile(
  api: BoardApi,
  workspace: Workspace,
  file: WorkspaceFile,
  body: z.ZodType<{ content: string | z.output<typeof StructuredPlan> }>,
): void {
  const path = `/api/workspace/${file}`;
  const answer = json('As it is now; empty if there is none.', Content, ETAG);
  route(api, {
    method: 'get',
    path,
    summary: `Reads the ${file}.`,
    responses: { 200: answer },
  }).answer(async () => {
    const { content, etag } = await workspace.read(file);
    return replyFile(content, etag);
  });
  route(api, {
    method: 'put',
    path,
    summary: `Writes the ${file}${file === 'plan' ? ', Markdown or steps' : ''}.`,
    middleware: readBody(),
    request: {
      headers: z.object({
        'if-match': z
          .string()
          .optional()
          .openapi({ description: 'The `ETag` that was read; without it, the file is overwritten.' }),
      }),
      body: jsonBody(body),
    },
    responses: {
      200: answer,
      409: refusal('It was changed since it was read.', ETAG),
    },
  }).answer(async (context) => {
    const text = planText(context.req.valid('json').content);
    const seen = tagsOf(context.req.header('if-match'));
    const { etag } = seen === null ? { etag: null } : await workspace.read(file);
    // The write compares again, and nothing can write between that check and the write.
    const written =
      seen === null || etag === null || seen.includes(etag)
        ? await workspace.write(file, text, etag)
        : { kind: 'stale' as const, etag };
    if (written.kind === 'written') return replyFile(text, written.etag);
    const error = 'It was changed since it was read; read it again.';
    return reply(409, { error }, { ETag: `"${written.etag}"` });
  });
}

function replyFile(content: string, etag: string): never {
  return reply(200, { content }, { ETag: `"${etag}"` });
}

/** null: any version. A compressing proxy makes an ETag weak; the content is the same. */
function tagsOf(header: string | undefined): string[] | null {
  if (header === undefined || header.trim() === '*') return null;
  return header.split(',').map((tag) =>
    tag
      .trim()
      .replace(/^W\//, '')
      .replace(/^"(.*)"$/, '$1'),
  );
}

const PIECE_BYTES = 65_536;
const MIME = /^[a-z0-9][a-z0-9!#$&^_.+-]*\/[a-z0-9][a-z0-9!#$&^_.+-]*$/i;
/** Types that a browser may show, because it does not execute them. SVG and other XML can contain scripts. */
const SHOWN = /^(text\/plain|image\/(?!svg|.*xml)[a-z0-9.+-]+)$/i;

export function addArtifacts(api: BoardApi, artifacts: Artifacts, log: Log): void {
  route(api, {
    method: 'get',
    path: '/api/artifacts/{task}/{id}',
    summary: 'A file that came out of a task.',
    request: { params: z.object({ task: ArtifactId, id: ArtifactId }) },
    responses: {
      200: media('Its bytes, with its type; an attachment, but for pictures and plain text.', '*/*', {
        'Content-Disposition': '`inline` or `attachment`, with its name.',
      }),
      404: refusal('There is no such artifact.'),
    },
  }).answer(async (context) => {
    const { task, id } = context.req.valid('param');
    const found = await artifacts.find(task, id);
    if (found === null) return reply(404, { error: 'There is no such artifact.' });
    const body = streamOf(() => bytesOf(artifacts, task, id, found.bytes), context, log);
    return replyWith(200, body, { ...headersOf(found), 'Content-Length': String(found.bytes) });
  });
}

/** So that a browser executes nothing of it. */
export function headersOf({ type, name }: { type: string; name: string }): Record<string, string> {
  const [bare = ''] = type.toLowerCase().split(';', 1);
  const plain = MIME.test(bare.trimEnd()) ? bare.trimEnd() : 'application/octet-stream';
  const how = SHOWN.test(plain) ? 'inline' : 'attachment';
  return {
    'Content-Type': plain.startsWith('text/') ? `${plain}; charset=utf-8` : plain,
    'Content-Disposition': `${how}; filename="${name.replace(/[^A-Za-z0-9._-]/g, '_')}"${inOtherLetters(name)}`,
    // A unique origin and no scripts, wherever it is shown.
    'Content-Security-Policy': "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:",
  };
}

/** A name with letters beyond ASCII, without signs that steer writing or lead into folders. */
function inOtherLetters(name: string): string {
  if (!/[^\0-\x7f]/.test(name)) return '';
  const plain = name.replace(/[\p{Cc}\p{Cf}\p{Cs}/\\:*?"'<>|()!]/gu, '_');
  return `; filename*=UTF-8''${encodeURIComponent(plain)}`;
}

/** Opens the file at the first read, so that a HEAD request reads nothing. */
async function* bytesOf(
  artifacts: Artifacts,
  task: string,
  id: string,
  size: number,
): AsyncGenerator<Uint8Array> {
  const opened = await artifacts.open(task, id);
  if (opened === null) throw new Error(`artifact ${task}/${id} was removed before it was sent`);
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
