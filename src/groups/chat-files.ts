/** `chat.yaml` of each chat: its title, and alias ids, which find a chat that moved on its platform. */
import { existsSync, lstatSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextPass } from 'node:timers/promises';
import { isMap, isScalar, isSeq } from 'yaml';
import type { Clock } from '../core/clock.js';
import { describe, Fault } from '../core/errors.js';
import { namesIn, readIfThere, unhurried } from '../core/file-access.js';
import { readOr } from '../core/file-cache.js';
import { documentOf } from '../core/file-text.js';
import type { ChatId } from '../core/ids.js';
import type { Log } from '../core/log.js';
import type { ChatFiles } from '../core/persona.js';
import type { SettingStore } from '../core/store.js';
import { fileUpdater } from '../core/write-whole.js';
import { chatFolder, isChatId } from './paths.js';
import { withKey } from './yaml-edit.js';

/** Files checked, or read, per pass of the event loop during a scan: about a millisecond. */
const STATS_AT_ONCE = 400;
const READS_AT_ONCE = 100;
/** Setting: alias ids as last read from all files, so that a start rereads only changed files. */
const READ_IDS = 'groups.ids';
/** Files changed this shortly before are reread: a file server's clock may differ from ours. */
const LEEWAY_MS = 86_400_000;

interface ReadIds {
  at: number;
  ids: Record<ChatId, ChatId[]>;
}
const KNOWN_TITLES = 10_000;

export function createChatFiles({
  groupsDir,
  store,
  clock,
  log,
}: {
  groupsDir: string;
  store: SettingStore;
  clock: Clock;
  log: Log;
}): ChatFiles {
  const update = fileUpdater();
  /** Built at the first lookup, kept current by our own writes. */
  let index: Promise<Map<ChatId, ChatId>> | null = null;
  /** Titles as last written or read by this process: needed in every turn, rarely changed. */
  const titles = new Map<ChatId, string>();

  return {
    async setTitle(chatId, title) {
      const path = fileOf(groupsDir, chatId);
      // An operator may have removed the folder meanwhile.
      if (titles.get(chatId) === title && existsSync(path)) return;
      await update(path, (bytes) => {
        const source = bytes?.toString('utf8') ?? '';
        if (documentOf(source).get('title') === title) return null;
        const edited = withKey(source, 'title', title);
        if (edited === null) log.warn({ path }, 'title not updated: the file is not plain YAML');
        return edited === null ? null : Buffer.from(edited, 'utf8');
      });
      if (titles.size >= KNOWN_TITLES) titles.clear();
      titles.set(chatId, title);
    },

    async addAlias(chatId, alias) {
      const path = fileOf(groupsDir, chatId);
      await update(path, (bytes) => {
        const source = bytes?.toString('utf8') ?? '';
        if (idsIn(source).includes(alias)) return null;
        return Buffer.from(withId(path, source, alias), 'utf8');
      });
      (await index)?.set(alias, chatId);
    },

    async resolve(alias) {
      return (await indexed()).get(alias) ?? null;
    },

    async prepare() {
      await indexed().catch((error) =>
        log.warn({ error: describe(error) }, 'searching groups/ for moved chats failed'),
      );
    },
  };

  function indexed(): Promise<Map<ChatId, ChatId>> {
    index ??= readIndex(groupsDir, store, clock, log).catch((error: unknown) => {
      index = null;
      throw error;
    });
    return index;
  }
}

function fileOf(groupsDir: string, chatId: ChatId): string {
  return join(chatFolder(groupsDir, chatId), 'chat.yaml');
}

/** Maps alias ids to chats. */
async function readIndex(
  groupsDir: string,
  store: SettingStore,
  clock: Clock,
  log: Log,
): Promise<Map<ChatId, ChatId>> {
  const before = await lastRead(store, clock);
  const at = clock.now();
  const ids = new Map<ChatId, ChatId[]>();
  const chats = (await namesIn(groupsDir)).filter(isChatId);
  const changed: ChatId[] = [];
  for (let from = 0; from < chats.length; from += STATS_AT_ONCE) {
    for (const chatId of chats.slice(from, from + STATS_AT_ONCE)) {
      const known = before.ids[chatId];
      if (!isOlder(`${groupsDir}/${chatId}/chat.yaml`, before.at - LEEWAY_MS)) changed.push(chatId);
      else if (known) ids.set(chatId, known);
    }
    await nextPass();
  }
  for await (const chatId of unhurried(changed, READS_AT_ONCE)) {
    const found = await aliasesOf(fileOf(groupsDir, chatId), log);
    if (found.length > 0) ids.set(chatId, found);
  }
  // If two chats claim an id, the same one gets it at every start.
  const inOrder = [...ids].sort(([a], [b]) => (a < b ? -1 : 1));
  const read: ReadIds = { at, ids: Object.fromEntries(inOrder) };
  await store
    .setSetting(READ_IDS, JSON.stringify(read))
    .catch((error) =>
      log.warn(
        { error: describe(error) },
        'storing the further ids of chats failed; the next start reads every chat.yaml',
      ),
    );
  return new Map(inOrder.flatMap(([chatId, ofIt]) => ofIt.map((id) => [id, chatId] as const)));
}

async function lastRead(store: SettingStore, clock: Clock): Promise<ReadIds> {
  const stored: ReadIds = JSON.parse((await store.setting(READ_IDS)) ?? '{"at":0,"ids":{}}');
  // If our clock was ahead then, the time tells nothing about later changes.
  return stored.at > clock.now() ? { at: 0, ids: {} } : stored;
}

async function aliasesOf(path: string, log: Log): Promise<ChatId[]> {
  const message = 'further ids of a chat skipped: its file cannot be read';
  const source = (await readOr(null, path, readIfThere, log, message))?.toString('utf8') ?? '';
  return source.includes('ids') ? idsIn(source) : [];
}

/** Whether a file is unchanged since this time. A copy, even one that keeps its date, counts as a change. */
function isOlder(path: string, time: number): boolean {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false });
    return found?.isFile() === true && found.ctimeMs < time;
  } catch {
    // Reading it reports the problem.
    return false;
  }
}

function idsIn(source: string): ChatId[] {
  const ids: unknown = documentOf(source).get('ids');
  const items = isSeq(ids) ? ids.items : [];
  return items.flatMap((item) => (isScalar(item) && typeof item.value === 'string' ? [item.value] : []));
}

function withId(path: string, source: string, alias: ChatId): string {
  const document = documentOf(source);
  const ids: unknown = document.get('ids');
  const plain = document.contents === null || isMap(document.contents);
  if (!plain || document.errors.length > 0 || (ids !== undefined && ids !== null && !isSeq(ids))) {
    throw new Fault(
      'memory_unavailable',
      `Cannot add an id to ${path}: it should be YAML with a list under "ids"`,
    );
  }
  if (isSeq(ids)) document.addIn(['ids'], alias);
  else document.set('ids', [alias]);
  return document.toString({ lineWidth: 0 });
}
