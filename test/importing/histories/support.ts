/** Exports made for a test, read by the real readers. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { withEntries } from '../../../src/cards/zip.js';
import { createZone } from '../../../src/core/dates.js';
import type { HistoryItem, HistoryMessage } from '../../../src/importing/histories/history.js';
import { openHistory } from '../../../src/importing/histories/open.js';

export const BERLIN = createZone('Europe/Berlin');

export async function fileOf(name: string, content: string | Buffer): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'coterie-history-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, name);
  await writeFile(path, content);
  return path;
}

export function zipOf(entries: Record<string, string | Buffer>): Buffer {
  return withEntries(
    null,
    new Map(Object.entries(entries).map(([name, content]) => [name, Buffer.from(content)])),
  );
}

export async function itemsOf(path: string, zone = BERLIN): Promise<HistoryItem[]> {
  const history = await openHistory(path, zone);
  try {
    const items: HistoryItem[] = [];
    for await (const item of history.items()) items.push(item);
    return items;
  } finally {
    await history.close();
  }
}

export async function readOf(name: string, content: string | Buffer) {
  const items = await itemsOf(await fileOf(name, content));
  return {
    items,
    messages: items.filter((item): item is HistoryMessage => item.kind === 'message'),
    left: items.flatMap((item) => (item.kind === 'left' ? [item.why] : [])),
    notes: items.flatMap((item) => (item.kind === 'note' ? [item.text] : [])),
  };
}

/** Time (UTC), speaker, role if the format says it, text: a line each. */
export function told(messages: HistoryMessage[]): string[] {
  return messages.map(({ at, speaker, role, text }) =>
    [new Date(at).toISOString().slice(0, 19), speaker, ...(role ? [role] : []), text].join(' | '),
  );
}
