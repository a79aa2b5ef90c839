/** Artifacts (seed 003): files that a task or a turn makes, `data/artifacts/<task_id>/<id>.<ext>`. */
import type { FileHandle } from 'node:fs/promises';
import * as z from 'zod';
import type { OutgoingFile } from './channel.js';
import type { ChatId } from './ids.js';

export interface ArtifactRef {
  id: string;
  title?: string;
  type?: string;
  /** Below `data`, or an address given by the caller. */
  ref?: string;
}

export interface NewArtifact {
  /** Of a task or a turn. */
  taskId: string;
  id: string;
  title: string | null;
  type: string | null;
  content: string;
  /** It is sent there. */
  chatId?: ChatId;
}

export interface FoundArtifact {
  path: string;
  /** The id with its extension. */
  name: string;
  type: string;
  title: string | null;
  bytes: number;
}

/** One of a list. */
export interface ListedArtifact {
  taskId: string;
  id: string;
  /** The id with its extension. */
  name: string;
  type: string;
  title: string | null;
  bytes: number;
  /** When it was last written. */
  at: number;
}

export type WrittenArtifact =
  /** `file`: a copy to send, as an agent's command could replace the original. */
  { ok: true; ref: ArtifactRef & { ref: string }; file: OutgoingFile | null } | { ok: false; reason: string };

/** Throws Fault `memory_unavailable` if the disk fails. */
export interface Artifacts {
  /** Replaces one with the same id. `reason`: a sentence for the model. */
  write(artifact: NewArtifact, signal: AbortSignal): Promise<WrittenArtifact>;
  /** null unless it is a file really below `data/artifacts`. */
  find(taskId: string, id: string): Promise<FoundArtifact | null>;
  /** Serve from this handle, which the caller closes: an agent's command could replace the path by a link. */
  open(taskId: string, id: string): Promise<(FoundArtifact & { handle: FileHandle }) | null>;
  list(taskId: string): Promise<ArtifactRef[]>;
  /** Of one task or turn, or of all; newest first. */
  newest(most: number, taskId?: string): Promise<ListedArtifact[]>;
}

/** Valid as a file name on every file system. */
export const ARTIFACT_ID = /^(?!\.{1,2}$)[A-Za-z0-9._-]{1,64}$/;

export function isArtifactId(id: string): boolean {
  return ARTIFACT_ID.test(id);
}

export function isMimeType(type: string): boolean {
  return type.length <= 200 && /^[a-z0-9][\w.+-]*\/[a-z0-9][\w.+-]*[ \t]*(?:;[ -~]*)?$/i.test(type);
}

// Artifacts in an answer (contract, part 9): fenced blocks with `{"artifact_deltas": […]}`. Blocks with a valid item
// are removed from the text. Linear.

/** Without content and ref: an existing artifact. */
export type ArtifactDelta = z.infer<typeof delta>;

interface WithDeltas {
  text: string;
  /** Of two with the same id, the last. */
  deltas: ArtifactDelta[];
  /** For the log. */
  leftOut: string[];
}

/** Models write null for absent fields. */
const text = z
  .string()
  .nullish()
  .transform((value) => value ?? undefined);
const delta = z.object({
  id: z.string().refine(isArtifactId, 'is no name of an artifact'),
  title: text,
  type: text.refine((type) => type === undefined || isMimeType(type), 'is no MIME type'),
  content: text,
  ref: text,
});
const block = z.object({ artifact_deltas: z.array(z.unknown()) });

export function deltasIn(text: string): WithDeltas {
  if (!text.includes('"artifact_deltas"')) return { text, deltas: [], leftOut: [] };
  const deltas = new Map<string, ArtifactDelta>();
  const leftOut: string[] = [];
  const kept: string[] = [];
  let from = 0;
  for (const { start, inner, end, body } of fencesOf(text)) {
    const found = end === null || body === null ? null : deltasOf(text.slice(inner, body));
    if (end === null || found === null) continue;
    kept.push(text.slice(from, start));
    from = end;
    leftOut.push(...found.leftOut);
    for (const each of found.deltas) {
      deltas.delete(each.id);
      deltas.set(each.id, each);
    }
  }
  if (deltas.size === 0) return { text, deltas: [], leftOut: [] };
  kept.push(text.slice(from));
  const words = kept.map((piece) => piece.replace(BLANK_LINES, '').trimEnd()).filter((piece) => piece !== '');
  return { text: words.join('\n\n'), deltas: [...deltas.values()], leftOut };
}

/** Of an unfinished answer, without a block that has only begun. */
export function wordsSoFar(text: string): string {
  const words = deltasIn(text).text;
  const last = fencesOf(words).at(-1);
  const begun = last?.end === null && mayBecomeDeltas(words.slice(last.inner)) ? last.start : words.length;
  return words
    .slice(0, begun)
    .replace(/(?:^|\n) {0,3}(?:`+|~+)[ \t]*([a-z_]*)$/i, (line, name) =>
      NAMES.some((each) => each.startsWith(name.toLowerCase())) ? '' : line,
    );
}

const NAMES = ['json', 'artifact_deltas'];
const OPENING = /^ {0,3}(`{3,}|~{3,})([^\r]*)\r*$/;
/** Leading blank lines; the indentation of the first line stays. */
const BLANK_LINES = /^(?:[ \t]*\r?\n)+/;
const BEGINNING = '{"artifact_deltas"';

interface ArtifactFence {
  start: number;
  inner: number;
  /** null: not closed. */
  body: number | null;
  end: number | null;
}

/** Labelled as JSON or deltas, not nested in other blocks. */
function fencesOf(text: string): ArtifactFence[] {
  const found: ArtifactFence[] = [];
  let open: { fence: ArtifactFence; marks: string; isOurs: boolean } | null = null;
  for (let at = 0; at < text.length; ) {
    const next = text.indexOf('\n', at);
    const after = next < 0 ? text.length : next + 1;
    const line = text.slice(at, next < 0 ? text.length : next);
    const marked = isMarked(line) ? OPENING.exec(line) : null;
    const marks = marked?.[1] ?? '';
    const name = marked?.[2]?.trim() ?? '';
    if (open === null && marks !== '' && !(marks.startsWith('`') && name.includes('`'))) {
      const fence = { start: at, inner: after, body: null, end: null };
      // An unfinished line may still change.
      open = { fence, marks, isOurs: NAMES.includes(name.toLowerCase()) && next >= 0 };
    } else if (open !== null && marks.startsWith(open.marks) && name === '') {
      if (open.isOurs) found.push({ ...open.fence, body: at, end: after });
      open = null;
    }
    at = after;
  }
  return open?.isOurs ? [...found, open.fence] : found;
}

/** Checked before any regular expression, because lines may be very long. */
function isMarked(line: string): boolean {
  const head = line.slice(0, 6).trimStart();
  return line.length <= 1_000 && (head.startsWith('```') || head.startsWith('~~~'));
}

/** null if it is incomplete or has no valid item. */
function deltasOf(source: string): Omit<WithDeltas, 'text'> | null {
  if (!source.includes('"artifact_deltas"')) return null;
  let given: unknown;
  try {
    given = JSON.parse(source);
  } catch {
    return null;
  }
  const read = block.safeParse(given);
  if (!read.success) return null;
  const items = read.data.artifact_deltas.map((item) => delta.safeParse(item));
  const deltas = items.flatMap(({ data }) => (data === undefined ? [] : [data]));
  const leftOut = items.flatMap(({ error }, n) => (error ? [`item ${n + 1}: ${faultsIn(error)}`] : []));
  return deltas.length === 0 ? null : { deltas, leftOut };
}

function faultsIn({ issues }: z.core.$ZodError): string {
  return issues.map(({ path, message }) => [path.join('.'), message].join(' ').trim()).join('; ');
}

function mayBecomeDeltas(source: string): boolean {
  const begun = source.slice(0, 1_000).replace(/\s+/g, '').slice(0, BEGINNING.length);
  return BEGINNING.startsWith(begun);
}
