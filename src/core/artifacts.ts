/**
 * Artifacts (seed 003): files that come out of a task or a turn. What is handed on are references, never contents: the
 * blob lies at `data/artifacts/<task_id>/<id>.<ext>`.
 */
import type { FileHandle } from 'node:fs/promises';
import * as z from 'zod';
import type { OutgoingFile } from './channel.js';
import type { ChatId } from './ids.js';

export interface ArtifactRef {
  id: string;
  title?: string;
  /** A MIME type. */
  type?: string;
  /** A path below `data`, as `artifacts/<task_id>/<id>.<ext>`, or an address of whoever gave it. */
  ref?: string;
}

export interface NewArtifact {
  /** The task's id, or the turn's. */
  taskId: string;
  id: string;
  title: string | null;
  type: string | null;
  content: string;
  /** Where it is to be sent; left out: nowhere. */
  chatId?: ChatId;
}

export interface FoundArtifact {
  path: string;
  /** As people are to see it: the id, with its extension. */
  name: string;
  type: string;
  title: string | null;
  bytes: number;
}

export type WrittenArtifact =
  /**
   * `file`: to be sent; a copy, for it goes out later, and by then an agent's command may have put something else in the
   * artifact's place. null: it is sent nowhere.
   */
  { ok: true; ref: ArtifactRef & { ref: string }; file: OutgoingFile | null } | { ok: false; reason: string };

/** Throw Fault `memory_unavailable` where the disk does not do as it is told. */
export interface Artifacts {
  /** The same id replaces what was there. `ok: false`: a sentence for the model; nothing was written. */
  write(artifact: NewArtifact, signal: AbortSignal): Promise<WrittenArtifact>;
  /** Only what lies really below `data/artifacts` and is a file; null otherwise. */
  find(taskId: string, id: string): Promise<FoundArtifact | null>;
  /**
   * As `find`, opened for reading; to be closed by whoever asked. What is served is read from here: between a look at a
   * path and its use an agent's command could put a link there.
   */
  open(taskId: string, id: string): Promise<(FoundArtifact & { handle: FileHandle }) | null>;
  /** Of one task, by their ids. */
  list(taskId: string): Promise<ArtifactRef[]>;
  /** Where the files of a task lie. Throws for an id that is no folder's name. */
  folderOf(taskId: string): string;
}

/** What an answer says of artifacts in a fenced block (contract, part 9). Without content and ref it names one that is there. */
export interface ArtifactDelta {
  id: string;
  title?: string;
  type?: string;
  content?: string;
  ref?: string;
}

/** What is a name on every disk; `.` and `..` are none. */
export const ARTIFACT_ID = /^(?!\.{1,2}$)[A-Za-z0-9._-]{1,64}$/;

export function isArtifactId(id: string): boolean {
  return ARTIFACT_ID.test(id);
}

/** `text/markdown`, also with parameters. */
export function isMimeType(type: string): boolean {
  return type.length <= 200 && /^[a-z0-9][\w.+-]*\/[a-z0-9][\w.+-]*[ \t]*(?:;[ -~]*)?$/i.test(type);
}

// What an answer says of artifacts (seed 003): fenced blocks with `{"artifact_deltas": […]}`. Those in which an item
// counts are taken out of its words; anything else stays as it was written. Pure, and as quick for a long text as it is
// long.

interface WithDeltas {
  /** What is left for people to read. */
  text: string;
  /** In the order in which they were written; of two with one id the last. */
  deltas: ArtifactDelta[];
  /** Why others in these blocks do not count, in words for the log. */
  leftOut: string[];
}

/** Models write null for what they leave out. */
const text = z.string().nullish();
const delta = z.object({
  id: z.string().refine(isArtifactId, 'is no name of an artifact'),
  title: text,
  type: text.refine((type) => type === undefined || type === null || isMimeType(type), 'is no MIME type'),
  content: text,
  ref: text,
});
const block = z.object({ artifact_deltas: z.array(z.unknown()) });

export function deltasIn(text: string): WithDeltas {
  // Nearly every answer.
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

/** The words of an answer that is still being written, without a block of which only the beginning is there. */
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
/** At the beginning; the indentation of the first line stays. */
const BLANK_LINES = /^(?:[ \t]*\r?\n)+/;
const BEGINNING = '{"artifact_deltas"';

/** A fenced block by its places in a text: its first line, what stands in it, and what comes behind it. */
interface ArtifactFence {
  start: number;
  inner: number;
  /** null: it is not closed. */
  body: number | null;
  end: number | null;
}

/** The fenced blocks that say they hold JSON or deltas; what stands within other blocks is none. */
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
      // A line that is not ended may still become another one.
      open = { fence, marks, isOurs: NAMES.includes(name.toLowerCase()) && next >= 0 };
    } else if (open !== null && marks.startsWith(open.marks) && name === '') {
      if (open.isOurs) found.push({ ...open.fence, body: at, end: after });
      open = null;
    }
    at = after;
  }
  return open?.isOurs ? [...found, open.fence] : found;
}

/** Before any expression looks at it: lines may be very long. */
function isMarked(line: string): boolean {
  const head = line.slice(0, 6).trimStart();
  return line.length <= 1_000 && (head.startsWith('```') || head.startsWith('~~~'));
}

/** null: it is no block of deltas, not a whole one, or nothing in it counts. */
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
  const deltas = items.flatMap(({ data }) => (data === undefined ? [] : [withoutNulls(data)]));
  const leftOut = items.flatMap(({ error }, n) => (error ? [`item ${n + 1}: ${faultsIn(error)}`] : []));
  return deltas.length === 0 ? null : { deltas, leftOut };
}

function withoutNulls({ id, title, type, content, ref }: z.infer<typeof delta>): ArtifactDelta {
  return {
    id,
    ...(typeof title === 'string' && { title }),
    ...(typeof type === 'string' && { type }),
    ...(typeof content === 'string' && { content }),
    ...(typeof ref === 'string' && { ref }),
  };
}

function faultsIn({ issues }: z.core.$ZodError): string {
  return issues.map(({ path, message }) => [path.join('.'), message].join(' ').trim()).join('; ');
}

/** Whether what is there so far begins like deltas. */
function mayBecomeDeltas(source: string): boolean {
  const begun = source.slice(0, 1_000).replace(/\s+/g, '').slice(0, BEGINNING.length);
  return BEGINNING.startsWith(begun);
}
