/** The part of chat.yaml that is for prompts: note, scene, people, and lorebooks that are off. */
import { isMap, isScalar, isSeq } from 'yaml';
import { describe, Fault } from '../core/errors.js';
import { readIfThere } from '../core/file-access.js';
import { readOr, readUnlessUnchanged } from '../core/file-cache.js';
import { dataOf, documentOf } from '../core/file-text.js';
import type { ChatId } from '../core/ids.js';
import type { Log } from '../core/log.js';
import type { ChatFiles, ChatNotes } from '../core/persona.js';
import type { fileUpdater } from '../core/write-whole.js';

export const NO_NOTES: ChatNotes = { note: '', scene: '', people: {}, loreOff: [] };

type Notes = { [Verb in 'notes' | 'setLoreOff' | 'setNote' | 'setPerson']: ChatFiles[Verb] };

export function createNotes(
  fileOf: (chatId: ChatId) => string,
  update: ReturnType<typeof fileUpdater>,
  log: Log,
): Notes {
  /** As last told, by path. */
  const told = new Map<string, string>();
  /** null: it says nothing for prompts. */
  const dataAt = readUnlessUnchanged<unknown>(null, async (path) => {
    const source = (await readIfThere(path))?.toString('utf8') ?? '';
    if (!/note|scene|people|lore_off|threads/.test(source)) return null;
    try {
      return dataOf(source);
    } catch (error) {
      tell(path, describe(error));
      return null;
    }
  });

  function tell(path: string, faults: string): void {
    if (faults !== '' && told.get(path) !== faults) {
      log.warn({ path, faults }, 'unreadable parts of chat.yaml are ignored');
    }
    told.set(path, faults);
  }

  async function set(path: string, keys: string[], value: object | string | null): Promise<void> {
    await update(path, (bytes) => {
      const document = asMap(path, bytes?.toString('utf8') ?? '');
      if (value === null) document.deleteIn(keys);
      else document.setIn(keys, document.createNode(value));
      return Buffer.from(document.toString({ lineWidth: 0 }), 'utf8');
    });
  }

  return {
    async notes(chatId, threadId) {
      const path = fileOf(chatId);
      const message = 'the notes of a chat cannot be read; answering without';
      const data = await readOr(null, path, dataAt, log, message);
      if (data === null) return NO_NOTES;
      const { notes, faults } = notesIn(data, threadId);
      tell(path, faults.join('; '));
      return notes;
    },

    async setNote(chatId, threadId, { kind, text }) {
      const keys = threadId === null ? [kind] : ['threads', threadId, kind];
      await set(fileOf(chatId), keys, text === '' ? null : text);
    },

    async setPerson(chatId, senderId, person) {
      await set(fileOf(chatId), ['people', senderId], person);
    },

    async setLoreOff(chatId, book, isOff) {
      const path = fileOf(chatId);
      await update(path, (bytes) => {
        const source = bytes?.toString('utf8') ?? '';
        const off = new Set(listIn(source, 'lore_off'));
        if (off.has(book) === isOff) return null;
        if (isOff) off.add(book);
        else off.delete(book);
        return Buffer.from(withList(path, source, 'lore_off', [...off]), 'utf8');
      });
    },
  };
}

export function listIn(source: string, key: string): string[] {
  const list: unknown = documentOf(source).get(key);
  const items = isSeq(list) ? list.items : [];
  return items.flatMap((item) => (isScalar(item) && typeof item.value === 'string' ? [item.value] : []));
}

function withList(path: string, source: string, key: string, list: string[]): string {
  const document = editable(path, source, key);
  if (list.length > 0) document.set(key, list);
  else document.delete(key);
  return document.toString({ lineWidth: 0 });
}

/** Throws if the file is none in which a list can be changed reliably. */
export function editable(path: string, source: string, key: string) {
  const document = asMap(path, source);
  const list: unknown = document.get(key);
  if (list !== undefined && list !== null && !isSeq(list)) {
    const message = `Cannot change ${path}: it should be YAML with a list under "${key}"`;
    throw new Fault('memory_unavailable', message);
  }
  return document;
}

/** Throws if the file is none in which keys can be changed reliably. */
function asMap(path: string, source: string) {
  const document = documentOf(source);
  const isPlain = document.contents === null || isMap(document.contents);
  if (isPlain && document.errors.length === 0) return document;
  throw new Fault(
    'memory_unavailable',
    `Cannot change ${path}: it should be YAML with lines of "key: value"`,
  );
}

/** `data`: of the file. `faults`: ends of sentences for operators. What a thread has goes before what the chat has. */
export function notesIn(data: unknown, threadId: string | null): { notes: ChatNotes; faults: string[] } {
  const faults: string[] = [];
  const chat = fieldsOf(data) ?? {};
  const thread = threadId === null ? null : fieldsOf(fieldsOf(chat.threads)?.[threadId]);
  const value = (key: string) => thread?.[key] ?? chat[key] ?? null;
  const text = (key: string, found: unknown): string => {
    if (typeof found === 'string' || typeof found === 'number') return String(found).trim();
    if (found !== null && found !== undefined) faults.push(`"${key}" should be a text`);
    return '';
  };
  const people = Object.entries({ ...fieldsOf(chat.people), ...fieldsOf(thread?.people) }).flatMap(
    ([id, about]) => {
      const fields = fieldsOf(about);
      if (fields === null) {
        faults.push(`"people" should have a name and a description for ${JSON.stringify(id)}`);
        return [];
      }
      const who = { name: text('name', fields.name), description: text('description', fields.description) };
      return [[id, who] as const];
    },
  );
  const off = value('lore_off');
  if (off !== null && !Array.isArray(off)) faults.push('"lore_off" should be a list of lorebooks');
  return {
    notes: {
      note: text('note', value('note')),
      scene: text('scene', value('scene')),
      people: Object.fromEntries(people),
      loreOff: Array.isArray(off) ? off.map(String) : [],
    },
    faults,
  };
}

function fieldsOf(value: unknown): Record<string, unknown> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null;
}
