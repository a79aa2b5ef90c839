/** The plan and the memory of the workspace over HTTP. A tag says which content an edit began from (docs/tasks.md). */
import * as z from 'zod';
import type { Workspace, WorkspaceFile } from '../core/persona.js';
import { planText } from '../core/task.js';
import { type Answer, type Operation, operation, refusal, refused } from './operation.js';
import { StructuredPlan } from './task-schemas.js';

const ETAG = { ETag: 'Another one whenever the content is.' };
const Document = z.strictObject({ content: z.string() });

const FILES: {
  file: WorkspaceFile;
  what: string;
  content: z.ZodType<string | z.output<typeof StructuredPlan>>;
}[] = [
  { file: 'plan', what: 'the plan, Markdown or steps', content: z.union([z.string(), StructuredPlan]) },
  { file: 'memory', what: 'the memory', content: z.string() },
];

export function workspaceOperations(workspace: Workspace): Operation[] {
  return FILES.flatMap(({ file, what, content }) => [
    operation({
      ...{ method: 'GET', path: `/api/workspace/${file}`, says: `Reads ${what.split(',')[0]}.` },
      answers: { 200: { says: 'As it is now; empty if there is none.', json: Document, headers: ETAG } },
      async run() {
        const { content, etag } = await workspace.read(file);
        return shown(content, etag);
      },
    }),
    operation({
      ...{ method: 'PUT', path: `/api/workspace/${file}`, says: `Writes ${what}.` },
      headers: { 'if-match': 'The `ETag` that was read. Left out: it overwrites whatever is there.' },
      body: z.strictObject({ content }),
      answers: {
        200: { says: 'As it was written.', json: Document, headers: ETAG },
        409: refusal('It was changed since it was read.', ETAG),
      },
      async run({ body, header }) {
        const text = planText(body.content);
        const written = await write(workspace, file, text, tagsOf(header('if-match')));
        if (written.kind === 'written') return shown(text, written.etag);
        return refused(409, 'It was changed since it was read; read it again.', {
          headers: { ETag: quoted(written.etag) },
        });
      },
    }),
  ]);
}

/** `seen`: any of these; null: whatever is there. */
async function write(workspace: Workspace, file: WorkspaceFile, text: string, seen: string[] | null) {
  if (seen === null) return workspace.write(file, text, null);
  const { etag } = await workspace.read(file);
  if (!seen.includes(etag)) return { kind: 'stale' as const, etag };
  // It looks once more, and nobody writes between that look and the write.
  return workspace.write(file, text, etag);
}

function shown(content: string, etag: string): Answer {
  return { status: 200, json: { content }, headers: { ETag: quoted(etag), 'Cache-Control': 'no-store' } };
}

function quoted(etag: string): string {
  return `"${etag}"`;
}

/** Proxies that compress make a tag a weak one; the content is the same. */
function tagsOf(header: string | undefined): string[] | null {
  if (header === undefined || header.trim() === '*') return null;
  return header.split(',').map((tag) =>
    tag
      .trim()
      .replace(/^W\//, '')
      .replace(/^"(.*)"$/, '$1'),
  );
}
