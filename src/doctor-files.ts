/** Findings of `coterie doctor` on files: colliding names, personas; and the route of one message. */
import { dirname } from 'node:path';
import { type Config, modelsOf } from './config.js';
import { entriesBelow, within } from './core/beneath.js';
import { Fault } from './core/errors.js';
import { namesIn } from './core/file-access.js';
import { composed } from './core/file-names.js';
import type { Log } from './core/log.js';
import type { Fate, TraceStore } from './core/memory.js';
import { isChatId } from './groups/paths.js';
import { personaReader } from './groups/personas.js';

const MOST_ENTRIES = 50_000;
const MOST_NAMES_TOLD = 20;
const MOST_FAULTS_TOLD = 50;

/** One sentence per name that looks the same as another and differs in bytes: only one of the files is found. */
export async function nameFindings(folders: readonly string[]): Promise<string[]> {
  const names = new Map<string, { folder: string; path: string; times: number }>();
  for (const folder of folders) {
    const looking = within(folder, [], async (open) => {
      let looked = 0;
      for await (const { path, name } of entriesBelow(open)) {
        if (++looked > MOST_ENTRIES) break;
        const looks = JSON.stringify([folder, dirname(path), composed(name)]);
        const times = (names.get(looks)?.times ?? 0) + 1;
        names.set(looks, { folder, path, times });
      }
    });
    // Other checks report missing and unreadable folders.
    await looking.catch(() => {});
  }
  const alike = [...names.values()].filter(({ times }) => times > 1);
  return alike
    .slice(0, MOST_NAMES_TOLD)
    .map(
      ({ folder, path, times }) =>
        `${folder}: ${path} stands there ${times} times, in letters that look the same (composed and decomposed ` +
        'Unicode); under its usual name, the composed one, only one of them is found; rename the other',
    );
}

/** One sentence per unusable entry of a persona's file, and the number of personas. */
export async function personaFindings(
  config: Config,
  log: Log,
): Promise<{ personas: number; findings: string[] }> {
  const { groupsDir } = config;
  const reader = personaReader(groupsDir, log, modelsOf(config));
  const faults = new Set<string>();
  let personas = 0;
  for (const chat of (await namesIn(groupsDir)).filter(isChatId)) {
    for (const persona of await reader.list(chat)) {
      personas++;
      for (const fault of persona.faults ?? []) faults.add(fault);
    }
  }
  for (const id of await reader.library()) {
    for (const fault of (await reader.asInLibrary(id)).faults ?? []) faults.add(fault);
  }
  const findings = [...faults].sort();
  const more = findings.length - MOST_FAULTS_TOLD;
  if (more > 0) findings.splice(MOST_FAULTS_TOLD, more, `… and ${more} more`);
  return { personas, findings };
}

/**
 * One line per persona that received the message; `wanted`: `telegram_123/45`, a chat ID and the platform's message ID.
 * Throws Fault if there is no such message.
 */
export async function whereItWent(store: TraceStore, wanted: string): Promise<string[]> {
  const slash = wanted.indexOf('/');
  if (slash < 0) {
    throw new Fault('configuration', `${wanted} should be CHAT_ID/MESSAGE_ID, like telegram_123/45`);
  }
  const ask = {
    chatId: wanted.slice(0, slash),
    wanted: { platformMessageId: wanted.slice(slash + 1) },
    most: 10,
  };
  const traces = await store.trace(ask);
  if (traces.length === 0) {
    throw new Fault('configuration', `${wanted} is not in the store: it never came in, or was not let in`);
  }
  return traces.map(({ message, personaId, fate }) => {
    const at = new Date(message.sentAt).toISOString();
    const whose = personaId === '' ? 'nobody' : personaId;
    return `${wanted} of ${at}, for ${whose}: ${wordsFor(fate)}`;
  });
}

function wordsFor(fate: Fate): string {
  switch (fate.kind) {
    case 'waiting':
      return 'waits to be answered';
    case 'window':
      return `in the window${fate.flushed ? ', seen by a memory flush' : ''}`;
    case 'flushed':
      return 'behind the window, after a memory flush had seen it';
    case 'archived':
      return `behind the window, in the archive ${fate.file}; a memory flush of it is owed`;
    case 'overheard':
      return 'overheard: said to somebody else';
    case 'reset':
      return 'forgotten by /reset, or never shown';
  }
}
