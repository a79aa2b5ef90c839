/** `manage_clipboard`: a few lines of a persona's (or agent's) own, in its prompt in every turn. */
import * as z from 'zod';
import { entryLine } from '../core/daily-log.js';
import { noted, originOfNotes, unescaped } from '../core/origin.js';
import type { ToolContext, ToolResult } from '../core/tool.js';
import {
  type Clipboard,
  type ClipboardOwner,
  MOST_CLIPBOARD_CHARS,
  numberedItems,
} from '../core/workspace.js';
import { type Allowed, defineTool } from './authorise.js';
import { done, doneFrom, failed, inDigits, refuseSecret, shown, unsaved } from './results.js';

const NAME = 'manage_clipboard';

const index = z.coerce.number();

export function manageClipboard(clipboard: Clipboard) {
  return defineTool({
    name: NAME,
    description:
      `Keeps a few lines before your eyes in every turn, at most ${MOST_CLIPBOARD_CHARS} characters ` +
      'in all: numbers, names, drafts that you need for a while. What should last belongs into memory.',
    hint: 'keep a few lines at hand, which you see in every turn',
    parameters: z.object({
      action: z.enum(['add', 'remove', 'read', 'clear']),
      content: z.string().optional().describe('For add: one line.'),
      index: index.optional().describe('For remove: the number of an item, from 1.'),
      indices: z.array(index).optional().describe('For remove: the numbers of several, as the list is now.'),
    }),
    // One tool has one risk: reading alone would be low.
    risk: 'medium',
    forAgents: true,
    usesFiles: true,
    async execute({ action, content = '', index, indices = [] }, context, allowed) {
      const owner = ownerOf(allowed, context.isTainted === true);
      if (action === 'read') {
        const items = await clipboard.items(owner);
        return told(items.length === 0 ? 'The clipboard is empty.' : shown(numberedItems(items)));
      }
      if (context.signal.aborted) return unsaved('Stopped: nothing was changed.');
      if (action === 'add') return add(clipboard, owner, content, context);
      if (action === 'remove') {
        const numbers = [...new Set([...(index === undefined ? [] : [index]), ...indices])];
        return remove(clipboard, owner, numbers, context.signal);
      }
      const count = await clipboard.clear(owner, context.signal);
      if (count === 0) return done('The clipboard was empty already.');
      return done(`The clipboard is empty now; ${count === 1 ? 'one item' : `${count} items`} went.`);
    },
  });
}

/** Only tasks with permission write an agent's shared clipboard, before they read untrusted text. */
function ownerOf({ target, caller: { agent, chatId } }: Allowed, isTainted: boolean): ClipboardOwner {
  if (agent === undefined) return target;
  return agent.shared.mayWrite && !isTainted ? { agent: agent.id } : { agent: agent.id, chatId };
}

async function add(
  clipboard: Clipboard,
  owner: ClipboardOwner,
  content: string,
  context: ToolContext,
): Promise<ToolResult> {
  const text = entryLine(unescaped(content));
  if (text === '') return failed('There is no content to add; nothing was changed.');
  const refusal = await refuseSecret(NAME, content, '', context);
  if (refusal !== null) return refusal;
  // The item outlives this turn, so it states its own origin.
  const item = noted(text, context.isTainted === true ? 'outside' : 'inside');
  const outcome = await clipboard.add(owner, item, context.signal);
  if (outcome.kind === 'full') {
    const [has, free, most] = [item.length, outcome.free, MOST_CLIPBOARD_CHARS].map(inDigits);
    return failed(
      `Nothing was added: this has ${has} characters, and of the clipboard’s ${most} there are ${free} free. ` +
        'Shorten it, or remove something first.',
    );
  }
  const { items } = outcome;
  if (outcome.kind === 'added') return told(`Added as number ${items.length}. ${nowShown(items)}`);
  return done(`That stands there already, as number ${items.indexOf(item) + 1}; nothing was added.`);
}

async function remove(
  clipboard: Clipboard,
  owner: ClipboardOwner,
  numbers: number[],
  signal: AbortSignal,
): Promise<ToolResult> {
  if (numbers.length === 0) {
    return failed('Which item? Give its number as index, or several as indices; nothing was changed.');
  }
  const { removed, items } = await clipboard.remove(owner, numbers, signal);
  const before = removed.length + items.length;
  const unknown = numbers.filter((number) => !Number.isInteger(number) || number < 1 || number > before);
  const ignored = unknown.length === 0 ? '' : ` There is no item ${unknown.join(', ')}; that was ignored.`;
  if (removed.length === 0) {
    return { ...told(`Nothing was removed.${ignored} ${nowShown(items)}`), failed: true };
  }
  const went = removed.map((item) => JSON.stringify(item)).join(', ');
  return told(`Removed: ${went}.${ignored} ${nowShown(items)}`);
}

/** The items state their own origins. */
function told(content: string): ToolResult {
  return doneFrom(originOfNotes(content), content);
}

function nowShown(items: string[]): string {
  return items.length === 0
    ? 'The clipboard is empty now.'
    : `It now says:\n\n${shown(numberedItems(items))}`;
}
