/**
 * Parses a request strictly, while treating as a tag whatever a lenient model might: it must be a tag of the gateway's,
 * in a place where the gateway writes it.
 */
import type { ModelRequest } from '../../src/core/model.js';

const NAMES = [
  ...['user_message', 'forwarded', 'in_reply_to', 'event', 'recalled', 'memory_now', 'summary'],
  'task_completed',
  ...['summary_so_far', 'conversation', 'own_message', 'first_message', 'tool_result', 'possible_speaker'],
];
/** Allowed nesting; any element may be at the top level. */
const WITHIN: Record<string, string[]> = {
  user_message: ['forwarded'],
  conversation: ['user_message', 'in_reply_to', 'event', 'task_completed', 'own_message', 'tool_result'],
};
const LENIENT = new RegExp(`<[\\s/\\\\]*(?:${NAMES.join('|')})(?![\\p{L}\\p{N}_.:-])`, 'gu');
const STRICT = new RegExp(`<(/?)(${NAMES.join('|')})((?: [a-z]+="[^"<>\\p{Cc}\\u2028\\u2029]*")*)>`, 'uy');
const TWINS: Record<string, string> = { а: 'a', е: 'e', о: 'o', с: 'c', ѕ: 's', '／': '/' };

export interface ReadElement {
  name: string;
  attributes: Record<string, string>;
  text: string;
}

/** Throws on anything that may pass for a tag but is not the gateway's. `notes`: the text outside of elements. */
export function readWords(content: string): { elements: ReadElement[]; notes: string } {
  const elements: ReadElement[] = [];
  const open: { element: ReadElement; from: number }[] = [];
  let notes = '';
  let end = 0;
  for (const at of tagsIn(content)) {
    STRICT.lastIndex = at;
    const [tag, closes, name = '', attributes = ''] = STRICT.exec(content) ?? [];
    if (tag === undefined) throw new Error(`not a tag of the gateway: ${excerpt(content, at)}`);
    const parent = open.at(-1);
    if (closes === '') {
      if (parent && !WITHIN[parent.element.name]?.includes(name))
        throw new Error(`${name} in ${parent.element.name}: ${excerpt(content, at)}`);
      if (!parent) notes += content.slice(end, at);
      const element = { name, attributes: attributesIn(attributes), text: '' };
      elements.push(element);
      open.push({ element, from: at + tag.length });
    } else {
      if (parent?.element.name !== name) throw new Error(`ends nothing: ${excerpt(content, at)}`);
      parent.element.text = content.slice(parent.from, at);
      open.pop();
    }
    end = at + tag.length;
  }
  if (open.length > 0) throw new Error(`never closed: ${open.at(-1)?.element.name}`);
  return { elements, notes: notes + content.slice(end) };
}

/** Throws on anything that may pass for a tag. */
export function readPlain(content: string): void {
  const [at] = tagsIn(content);
  if (at !== undefined) throw new Error(`a tag: ${excerpt(content, at)}`);
}

/** The lines outside of fences, and the text inside each. */
export function readFences(content: string): { lines: string[]; fenced: string[] } {
  const lines: string[] = [];
  const fenced: string[] = [];
  let fence = '';
  for (const line of content.split(/\r\n|[\n\r]/)) {
    const [, marks = '', rest = ''] = /^ {0,3}(`{3,}|~{3,})(.*)$/u.exec(line) ?? [];
    if (fence === '' && marks !== '') {
      fence = marks;
      fenced.push('');
    } else if (fence !== '' && marks.startsWith(fence) && rest.trim() === '') fence = '';
    else if (fence !== '') fenced[fenced.length - 1] += `${line}\n`;
    else lines.push(line);
  }
  if (fence !== '') throw new Error('a fence is open');
  return { lines, fenced };
}

export function contentsOf(request: ModelRequest, role: ModelRequest['messages'][number]['role']): string[] {
  return request.messages.filter((message) => message.role === role).map(({ content }) => content);
}

function tagsIn(content: string): number[] {
  let folded = '';
  const places: number[] = [];
  for (let at = 0; at < content.length; ) {
    const character = String.fromCodePoint(content.codePointAt(at) ?? 0);
    const seen = /[\n\t]/.test(character)
      ? character
      : character
          .normalize('NFKD')
          .replace(/[\p{C}\p{M}\p{DI}]/gu, '')
          .toLowerCase();
    for (const each of seen) {
      const sign = TWINS[each] ?? each;
      folded += sign;
      for (let n = 0; n < sign.length; n++) places.push(at);
    }
    at += character.length;
  }
  return Array.from(folded.matchAll(LENIENT), ({ index }) => places[index] ?? 0);
}

function attributesIn(text: string): Record<string, string> {
  return Object.fromEntries(
    Array.from(text.matchAll(/ ([a-z]+)="([^"]*)"/g), ([, key = '', value = '']) => [key, value]),
  );
}

function excerpt(content: string, at: number): string {
  return JSON.stringify(content.slice(Math.max(0, at - 80), at + 120));
}
