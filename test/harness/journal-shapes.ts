/** Strict schemas of journal entries in `working.log`, the archive and the stream: the two shapes of seed 002. */
import { existsSync, readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { JournalEntry } from '../../src/core/journal.js';

const instant = z.string().regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,3})?Z$/);
const action = z.looseObject({ tool: z.string().min(1) });
const results = z.union([
  z.strictObject({ stdout: z.string(), stderr: z.string(), code: z.number().nullable() }),
  z.strictObject({ output: z.unknown() }).refine((each) => 'output' in each),
  z.strictObject({ error: z.string() }),
]);
const intended = {
  id: z.string().startsWith('turn-'),
  type: z.literal('MattTurn'),
  agent: z.string().min(1),
  parent_event_id: z.string().startsWith('evt-').nullable(),
  timestamp_intent: instant,
  thought_signature: z.string().optional(),
  reasoning: z.string(),
  action,
};
const digest = z.strictObject({
  start_ts: z.number(),
  end_ts: z.number(),
  msg_count: z.number().int(),
  participants: z.array(z.string()),
  summary: z.string(),
});
const event = {
  id: z.string().startsWith('evt-'),
  type: z.literal('GUPPIEvent'),
  agent: z.string().min(1),
  timestamp_event: instant,
  source: z.string().min(1),
};

export const ENTRY = z.union([
  z.strictObject({ ...intended, status: z.literal('pending'), results: z.null() }),
  z.strictObject({
    ...intended,
    timestamp_outcome: instant,
    status: z.enum(['completed', 'interrupted']),
    results,
  }),
  z.strictObject({
    ...event,
    event_type: z.literal('NewInboxMessage'),
    content: z.string(),
    from: z.string().min(1),
  }),
  // Without words: a forgotten entry.
  z.strictObject({
    ...event,
    event_type: z.literal('AlarmClock'),
    content: z.union([
      z.string(),
      z.strictObject({ task_id: z.number().int(), schedule: z.string(), prompt: z.string() }),
    ]),
  }),
  // Without words: a forgotten entry.
  z.strictObject({
    ...event,
    event_type: z.literal('SocialDigest'),
    content: z.union([digest, z.string()]),
  }),
  z.strictObject({
    ...event,
    event_type: z.literal('TaskCompleted'),
    content: z.union([z.string(), z.record(z.string(), z.unknown())]),
    action_id: z.string().startsWith('turn-'),
  }),
]);
export type Line = z.infer<typeof ENTRY>;

/** The lines of a file; throws on an invalid shape or a repeated ID. Empty if the file does not exist. */
export async function linesOf(file: string): Promise<Line[]> {
  const text = await readFile(file, 'utf8').catch(() => '');
  const whole = text.split('\n');
  // A killed process may have left half a line in an archive; the next process removes it.
  if (whole.pop() !== '' && file.endsWith('working.log')) throw new Error(`${file} ends with a torn line`);
  const lines = whole.map((line, n) => {
    const parsed = ENTRY.safeParse(JSON.parse(line));
    if (!parsed.success)
      throw new Error(`${file}:${n + 1} has no shape of the journal: ${line}\n${parsed.error}`);
    return parsed.data;
  });
  const ids = lines.map(({ id }) => id);
  if (new Set(ids).size < ids.length) throw new Error(`${file} has an entry twice`);
  return lines;
}

/** The present entries in a home's `working.log`, not validated; empty if it does not exist. */
export function journalOf({ folder }: { folder: string }): JournalEntry[] {
  const file = join(folder, 'data/working.log');
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

/** All journal entries below a folder: `working.log` and the archive of every `data_dir` in it. */
export async function journalBelow(folder: string): Promise<Line[]> {
  const names = await readdir(folder, { recursive: true }).catch(() => []);
  const files = names.filter((name) => /(^|\/)(working\.log|archive\/\d{4}-\d\d-\d\d\.jsonl)$/.test(name));
  return (await Promise.all(files.map((name) => linesOf(join(folder, name))))).flat();
}
