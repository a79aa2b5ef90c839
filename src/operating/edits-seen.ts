/**
 * How late gateways see an edit in a folder that they share: `coterie doctor` edits a hidden file there, and each gateway
 * says by the store what it reads of it, in the way in which personas' files are read.
 */
import { readFile, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { type Clock, OVER } from '../core/clock.js';
import { readUnlessUnchanged } from '../core/file-cache.js';
import type { Notices } from '../core/node.js';
import { openTemporary, removeLeftOvers, writeWhole } from '../core/write-whole.js';

interface Timed {
  notices: Notices;
  clock: Clock;
  /** ms since anything; never jumps. */
  elapsed(): number;
}

/** `longest`: of the edits; null: one of them was not seen in time. */
export type EditsSeen =
  | { node: string; kind: 'silent' }
  | { node: string; kind: 'no file' }
  | { node: string; kind: 'seen'; longestMs: number | null };

/** Without that a gateway is silent, or an edit not seen. */
export const SEEN_WITHIN_MS = 5_000;
/** A gateway that knows the file asks whether it has changed, instead of reading it. */
const KNOWN_AFTER_MS = 300;
const EDITS = 3;
const LOOK_EVERY_MS = 20;
const ASK_EVERY_MS = 250;
/** Longer than everything that is asked of a gateway. */
const FOLLOW_MS = 30_000;
/** Its temporary names are hidden, so no reader takes them for content. */
const PROBE = 'coterie-doctor';
/** Also for gateways of another user than the doctor's. */
const READABLE = 0o644;

const Asked = z.object({ ask: z.uuid(), file: z.string().regex(/^\.coterie-doctor\.\d+-\d+\.tmp$/) });
/** `edit`: 0 for none. */
const Said = z.object({ answer: z.uuid(), node: z.string(), edit: z.number() });

function parsed<T>(kind: z.ZodType<T>, text: string): T | null {
  try {
    return kind.safeParse(JSON.parse(text)).data ?? null;
  } catch {
    // Of another version.
    return null;
  }
}

const contentOf = (id: string, edit: number) => `${id} ${edit}\n`;

function editIn(content: string, id: string): number {
  const [of, edit] = content.trim().split(' ');
  return of === id ? Number(edit) : 0;
}

// ── At a gateway ────────────────────────────────────────────────────────────────────────────────────────────

/** Answers until the function that it returns is called. */
export function answerOnEdits(parts: Timed & { node: string; folder: string }): () => void {
  const { node, folder, notices, clock, elapsed } = parts;
  const over = new AbortController();
  /** By the asker's id, the edit that was told; null: none, or it may not have been heard. */
  const told = new Map<string, number | null>();

  async function follow(id: string, path: string): Promise<void> {
    const read = readUnlessUnchanged('', (file) => readFile(file, 'utf8'));
    const until = elapsed() + FOLLOW_MS;
    while (elapsed() < until && !over.signal.aborted) {
      // A moment without the file is an edit that is not seen.
      const edit = editIn(await read(path).catch(() => ''), id);
      if (edit !== told.get(id)) {
        told.set(id, edit);
        await notices.notify(JSON.stringify({ answer: id, node, edit }));
      }
      await clock.sleep(LOOK_EVERY_MS, over.signal);
    }
  }

  const stopHearing = notices.onNotice((text) => {
    const asked = parsed(Asked, text);
    if (asked === null) return;
    const isFollowed = told.has(asked.ask);
    told.set(asked.ask, null);
    if (isFollowed) return;
    follow(asked.ask, join(folder, asked.file))
      // The one who asks reports the silence.
      .catch(() => {})
      .finally(() => told.delete(asked.ask));
  });
  return () => {
    stopHearing();
    over.abort(OVER);
  };
}

// ── At the one who asks ─────────────────────────────────────────────────────────────────────────────────────

/** Of each of these gateways, in their order. Leaves nothing in the folder. */
export async function timeEdits(
  nodes: readonly string[],
  { folder, newId, ...timed }: Timed & { folder: string; newId(): string },
): Promise<EditsSeen[]> {
  await removeLeftOvers(folder, (name) => name.includes(PROBE));
  const { path, file } = await openTemporary(join(folder, PROBE));
  const id = newId();
  const answers = new Map<string, number>();
  const stopHearing = timed.notices.onNotice((text) => {
    const said = parsed(Said, text);
    if (said?.answer === id) answers.set(said.node, said.edit);
  });
  try {
    await file
      .chmod(READABLE)
      .then(() => file.writeFile(contentOf(id, 1)))
      .finally(() => file.close());
    return await timedEdits(nodes, { path, id, answers, ...timed });
  } finally {
    stopHearing();
    await rm(path, { force: true });
  }
}

interface Probe extends Timed {
  path: string;
  id: string;
  /** The edit that each gateway reads now. */
  answers: ReadonlyMap<string, number>;
}

async function timedEdits(nodes: readonly string[], probe: Probe): Promise<EditsSeen[]> {
  const { path, id, answers, notices, clock } = probe;
  const asking = new AbortController();
  async function ask(): Promise<void> {
    // A notice is lost until both sides listen.
    while (!asking.signal.aborted) {
      await notices.notify(JSON.stringify({ ask: id, file: basename(path) }));
      await clock.sleep(ASK_EVERY_MS, asking.signal);
    }
  }
  const looking = sawEdit(1, nodes, probe).finally(() => asking.abort(OVER));
  const [found] = await Promise.all([looking, ask()]);
  const readers = nodes.filter((node) => found.has(node));
  const longest = new Map<string, number | null>(readers.map((node) => [node, 0]));
  for (let edit = 2; edit < 2 + EDITS && [...longest.values()].some((ms) => ms !== null); edit++) {
    await clock.sleep(KNOWN_AFTER_MS);
    await writeWhole(path, contentOf(id, edit), { mode: READABLE });
    const seen = await sawEdit(edit, readers, probe);
    for (const [node, before] of longest) {
      const ms = seen.get(node);
      longest.set(node, ms === undefined || before === null ? null : Math.max(before, ms));
    }
  }
  return nodes.map((node): EditsSeen => {
    const longestMs = longest.get(node);
    if (longestMs !== undefined) return { node, kind: 'seen', longestMs };
    return { node, kind: answers.has(node) ? 'no file' : 'silent' };
  });
}

/** Those of the nodes that see it in time, each with the ms until then. */
async function sawEdit(
  edit: number,
  nodes: readonly string[],
  { answers, clock, elapsed }: Probe,
): Promise<Map<string, number>> {
  const began = elapsed();
  const seen = new Map<string, number>();
  while (seen.size < nodes.length && elapsed() - began < SEEN_WITHIN_MS) {
    await clock.sleep(LOOK_EVERY_MS);
    for (const node of nodes)
      if (!seen.has(node) && answers.get(node) === edit) seen.set(node, elapsed() - began);
  }
  return seen;
}
