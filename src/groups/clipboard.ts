/**
 * Clipboards on disk, `data/clipboard/<chat_id>/<persona_id>.md` (agents: `<chat_id>/agents/<agent>.md` and
 * `<agent>.md`), for step 4 of the route and `manage_clipboard`. Writes use memory's updater, so that an
 * operator's edit is never lost, and preserve every byte of the remaining items.
 */
import { join } from 'node:path';
import { nameOnDisk } from '../core/beneath.js';
import type { Exclusive } from '../core/concurrency.js';
import { cutWithMarker } from '../core/cut.js';
import { entryLine } from '../core/daily-log.js';
import { Fault } from '../core/errors.js';
import { readIfThere } from '../core/file-access.js';
import { readOr, readUnlessUnchanged } from '../core/file-cache.js';
import { BOM, decode, encode, endsLine, linesOf } from '../core/file-text.js';
import type { Log } from '../core/log.js';
import { isAgentId } from '../core/task.js';
import {
  type Clipboard,
  type ClipboardOwner,
  MOST_CLIPBOARD_CHARS,
  numberedItems,
} from '../core/workspace.js';
import { fileUpdater } from '../core/write-whole.js';
import { agentClipboards, chatFolder, isPersonaId } from './paths.js';

export interface ClipboardOptions {
  /** `data/clipboard` */
  folder: string;
  /** Shared with memory, which erases text in clipboards, too. */
  exclusive: Exclusive;
  log: Log;
}

/** A line of the file: its bytes with the line end, and its item; empty if blank. */
interface ClipboardLine {
  bytes: string;
  item: string;
}

export function createClipboard({ folder, exclusive, log }: ClipboardOptions): Clipboard {
  const update = fileUpdater(exclusive);
  const shownIn = readUnlessUnchanged('', async (path) => {
    const text = numberedItems(itemsOf(parse(await readIfThere(path))));
    return cutWithMarker(text, MOST_CLIPBOARD_CHARS, 'clipboard-max-chars');
  });

  return {
    items: async (owner) => itemsOf(parse(await readIfThere(fileIn(folder, owner)))),

    shown: async (owner) =>
      readOr(
        '',
        fileIn(folder, owner),
        shownIn,
        log,
        'clipboard cannot be read; the prompt counts it as empty',
      ),

    async add(owner, given, signal) {
      const item = entryLine(given);
      let items: string[] = [];
      let free = 0;
      let isThere = false;
      const isAdded = await update(
        fileIn(folder, owner),
        (current) => {
          items = itemsOf(parse(current));
          isThere = items.includes(item);
          free = freeBeside(items);
          if (isThere || item.length > free) return null;
          const before = current?.toString('latin1') ?? '';
          return Buffer.from(`${before}${endsLine(before) ? '' : '\n'}${encode(item)}\n`, 'latin1');
        },
        signal,
      );
      if (isAdded) return { kind: 'added', items: [...items, item] };
      return isThere ? { kind: 'there', items } : { kind: 'full', free };
    },

    async remove(owner, numbers, signal) {
      let removed: string[] = [];
      let items: string[] = [];
      await update(
        fileIn(folder, owner),
        (current) => {
          const lines = parse(current);
          const listed = lines.filter(isItem);
          const gone = new Set(numbers.map((number) => listed[number - 1]));
          removed = itemsOf(lines.filter((line) => gone.has(line)));
          const left = lines.filter((line) => !gone.has(line));
          items = itemsOf(left);
          return removed.length === 0 ? null : bytesOf(left);
        },
        signal,
      );
      return { removed, items };
    },

    async clear(owner, signal) {
      let count = 0;
      await update(
        fileIn(folder, owner),
        (current) => {
          count = itemsOf(parse(current)).length;
          return count === 0 ? null : Buffer.alloc(0);
        },
        signal,
      );
      return count;
    },
  };
}

function fileIn(folder: string, owner: ClipboardOwner): string {
  if ('agent' in owner) {
    const place = owner.chatId === undefined ? folder : agentClipboards(folder, owner.chatId);
    if (!isAgentId(owner.agent)) throw noClipboard(owner.agent, 'an agent');
    return join(place, `${owner.agent}.md`);
  }
  const { chatId, personaId } = owner;
  if (!isPersonaId(personaId)) throw noClipboard(personaId, 'a persona');
  const chat = chatFolder(folder, chatId);
  return join(chat, nameOnDisk(chat, `${personaId}.md`));
}

function noClipboard(id: string, kind: string): Fault {
  const shown = JSON.stringify(id.slice(0, 80));
  return new Fault('memory_unavailable', `${shown} is not the id of ${kind}, so it has no clipboard`);
}

function parse(bytes: Buffer | null): ClipboardLine[] {
  const whole = bytes?.toString('latin1') ?? '';
  const bom = whole.startsWith(BOM) ? BOM : '';
  return linesOf(whole.slice(bom.length)).map((line) => ({ bytes: line, item: entryLine(decode(line)) }));
}

function isItem({ item }: ClipboardLine): boolean {
  return item !== '';
}

function itemsOf(lines: ClipboardLine[]): string[] {
  return lines.filter(isItem).map(({ item }) => item);
}

function bytesOf(lines: ClipboardLine[]): Buffer {
  return Buffer.from(lines.map(({ bytes }) => bytes).join(''), 'latin1');
}

function freeBeside(items: string[]): number {
  const taken = items.length === 0 ? 0 : items.join('\n').length + 1;
  return Math.max(0, MOST_CLIPBOARD_CHARS - taken);
}
