/** Further ids of chats, under `ids` in their chat.yaml. */
import { lstatSync } from 'node:fs';
import { isMap, isScalar, isSeq } from 'yaml';
import { describe, Fault } from '../core/errors.js';
import { namesIn, readIfThere, unhurried } from '../core/file-access.js';
import { readOr } from '../core/file-cache.js';
import { documentOf } from '../core/file-text.js';
import type { ChatId } from '../core/ids.js';
import type { Log } from '../core/log.js';
import type { SettingStore } from '../core/store.js';
import { isChatId } from './paths.js';

/** Files checked, or read, per pass of the event loop: about a millisecond. */
const STATS_AT_ONCE = 400;
const READS_AT_ONCE = 100;
/** Setting: ids as last read from all files, so that a start rereads only changed files. */
const READ_IDS = 'groups.ids';
/** Files changed this shortly before are reread: a file server's clock may differ from ours. */
const LEEWAY_MS = 86_400_000;

interface ReadIds {
  at: number;
  ids: Record<ChatId, ChatId[]>;
}

/** Maps further ids to chats. */
export async function readIndex(
  groupsDir: string,
  store: SettingStore,
  clock: { now(): number },
  log: Log,
): Promise<Map<ChatId, ChatId>> {
  const at = clock.now();
  const stored: ReadIds = JSON.parse((await store.setting(READ_IDS)) ?? '{"at":0,"ids":{}}');
  // If our clock was ahead then, the time tells nothing about later changes.
  const before: ReadIds = stored.at > at ? { at: 0, ids: {} } : stored;
  const ids = new Map<ChatId, ChatId[]>();
  const changed: ChatId[] = [];
  for await (const chatId of unhurried((await namesIn(groupsDir)).filter(isChatId), STATS_AT_ONCE)) {
    const known = before.ids[chatId];
    if (!isOlder(`${groupsDir}/${chatId}/chat.yaml`, before.at - LEEWAY_MS)) changed.push(chatId);
    else if (known) ids.set(chatId, known);
  }
  for await (const chatId of unhurried(changed, READS_AT_ONCE)) {
    const message = 'further ids of a chat skipped: its file cannot be read';
    const bytes = await readOr(null, `${groupsDir}/${chatId}/chat.yaml`, readIfThere, log, message);
    const source = bytes?.toString('utf8') ?? '';
    const found = source.includes('ids') ? idsIn(source) : [];
    if (found.length > 0) ids.set(chatId, found);
  }
  // If two chats claim an id, the same one gets it at every start.
  const inOrder = [...ids].sort(([a], [b]) => (a < b ? -1 : 1));
  const read: ReadIds = { at, ids: Object.fromEntries(inOrder) };
  await store.setSetting(READ_IDS, JSON.stringify(read)).catch((error) => {
    const message = 'storing the further ids of chats failed; the next start reads every chat.yaml';
    log.warn({ error: describe(error) }, message);
  });
  return new Map(inOrder.flatMap(([chatId, ofIt]) => ofIt.map((id) => [id, chatId] as const)));
}

/** A copy, even one that keeps its date, counts as a change. */
function isOlder(path: string, time: number): boolean {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false });
    return found?.isFile() === true && found.ctimeMs < time;
  } catch {
    // Reading it reports the problem.
    return false;
  }
}

export function idsIn(source: string): ChatId[] {
  const ids: unknown = documentOf(source).get('ids');
  const items = isSeq(ids) ? ids.items : [];
  return items.flatMap((item) => (isScalar(item) && typeof item.value === 'string' ? [item.value] : []));
}

export function withId(path: string, source: string, alias: ChatId): string {
  const document = documentOf(source);
  const ids: unknown = document.get('ids');
  const plain = document.contents === null || isMap(document.contents);
  if (!plain || document.errors.length > 0 || (ids !== undefined && ids !== null && !isSeq(ids))) {
    const message = `Cannot add an id to ${path}: it should be YAML with a list under "ids"`;
    throw new Fault('memory_unavailable', message);
  }
  if (isSeq(ids)) document.addIn(['ids'], alias);
  else document.set('ids', [alias]);
  return document.toString({ lineWidth: 0 });
}
