/** Clipboards, `data/clipboard/<chat_id>/<persona_id>.md`; of agents `<chat_id>/agents/<agent>.md` and `<agent>.md`. */
import { join } from 'node:path';
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
import { agentClipboards, chatFolder, isPersonaId, onDisk } from './paths.js';

/** `folder`: `data/clipboard`. `exclusive` is shared with memory, which erases text in clipboards, too. */
export function createClipboard(folder: string, exclusive: Exclusive, log: Log): Clipboard {
  const update = fileUpdater(exclusive);
  const shownIn = readUnlessUnchanged('', async (path) => {
    const text = numberedItems(itemsOf(linesIn(await readIfThere(path))));
    return cutWithMarker(text, MOST_CLIPBOARD_CHARS, 'clipboard-max-chars');
  });
  const message = 'clipboard cannot be read; the prompt counts it as empty';

  return {
    items: async (owner) => itemsOf(linesIn(await readIfThere(fileIn(folder, owner)))),

    shown: async (owner) => readOr('', fileIn(folder, owner), shownIn, log, message),

    async add(owner, given, signal) {
      const item = entryLine(given);
      let items: string[] = [];
      const change = (current: Buffer | null) => {
        items = itemsOf(linesIn(current));
        if (items.includes(item) || item.length > freeBeside(items)) return null;
        const before = current?.toString('latin1') ?? '';
        return Buffer.from(`${before}${endsLine(before) ? '' : '\n'}${encode(item)}\n`, 'latin1');
      };
      if (await update(fileIn(folder, owner), change, signal))
        return { kind: 'added', items: [...items, item] };
      return items.includes(item) ? { kind: 'there', items } : { kind: 'full', free: freeBeside(items) };
    },

    async remove(owner, numbers, signal) {
      let removed: string[] = [];
      let items: string[] = [];
      const change = (current: Buffer | null) => {
        const lines = linesIn(current);
        let n = 0;
        const isGone = lines.map((line) => itemIn(line) !== '' && numbers.includes(++n));
        removed = itemsOf(lines.filter((_, at) => isGone[at]));
        const left = lines.filter((_, at) => !isGone[at]);
        items = itemsOf(left);
        return removed.length === 0 ? null : Buffer.from(left.join(''), 'latin1');
      };
      await update(fileIn(folder, owner), change, signal);
      return { removed, items };
    },

    async clear(owner, signal) {
      let count = 0;
      const change = (current: Buffer | null) => {
        count = itemsOf(linesIn(current)).length;
        return count === 0 ? null : Buffer.alloc(0);
      };
      await update(fileIn(folder, owner), change, signal);
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
  if (!isPersonaId(owner.personaId)) throw noClipboard(owner.personaId, 'a persona');
  return onDisk(chatFolder(folder, owner.chatId), `${owner.personaId}.md`);
}

function noClipboard(id: string, kind: string): Fault {
  const shown = JSON.stringify(id.slice(0, 80));
  return new Fault('memory_unavailable', `${shown} is not the id of ${kind}, so it has no clipboard`);
}

/** As bytes, without the byte order mark. */
function linesIn(bytes: Buffer | null): string[] {
  const whole = bytes?.toString('latin1') ?? '';
  return linesOf(whole.startsWith(BOM) ? whole.slice(BOM.length) : whole);
}

/** Empty for a blank line. */
function itemIn(line: string): string {
  return entryLine(decode(line));
}

function itemsOf(lines: string[]): string[] {
  return lines.map(itemIn).filter((item) => item !== '');
}

function freeBeside(items: string[]): number {
  const taken = items.length === 0 ? 0 : items.join('\n').length + 1;
  return Math.max(0, MOST_CLIPBOARD_CHARS - taken);
}
