/**
 * MicroClaw's `groups/<chat>/<persona>/MEMORY.md`, with the daily log and the conversations of each chat, as files of
 * `groups/`. Its chats and personas are numbers: those of Telegram, and 1 for the persona that is always there.
 */
import { composed } from '../core/names-on-disk.js';
import type { Plan, Step } from './plan.js';
import { filesBelow, type Source } from './source.js';

/** What may be the name of a chat, and of a persona, in `groups/`. */
export interface Names {
  isChatId(name: string): boolean;
  isPersonaId(name: string): boolean;
}

/** Folders of a chat that are no personas. */
const NOT_PERSONAS = new Set(['memory', 'conversations', 'archive', 'browser-profile']);
const NUMBER = /^-?\d{1,20}$/;

export async function planOfGroups(source: Source, names: Names): Promise<Plan> {
  const plan: Plan = { steps: [], found: [] };
  for (const base of [['groups'], ['runtime', 'groups']]) {
    const files = await filesBelow(source, base);
    const steps = stepsOf(source, base, files, names);
    if (steps.length > 0) plan.found.push(`groups of MicroClaw (${base.join('/')}/)`);
    plan.steps.push(...steps);
  }
  return plan;
}

function stepsOf(source: Source, base: string[], files: string[][], names: Names): Step[] {
  const inGroups = files.map((from) => ({ from, below: from.slice(base.length) }));
  const principles = inGroups.filter(({ below }) => below.length === 1 && below[0] === 'AGENTS.md');
  const steps: Step[] = principles.map(({ from }) => ({
    ...{ from, place: 'groups', to: ['AGENTS.md'], isAlwaysBeside: true },
  }));
  for (const chat of new Set(inGroups.map(({ below }) => below[0] ?? ''))) {
    const ofChat = inGroups.filter(({ below }) => below[0] === chat && below.length > 1);
    if (ofChat.length > 0) steps.push(...stepsOfChat(source, chat, ofChat, names));
  }
  const others = inGroups.filter(({ below }) => below.length === 1 && below[0] !== 'AGENTS.md');
  for (const { from } of others) passOver(source, from);
  return steps;
}

function stepsOfChat(
  source: Source,
  chat: string,
  files: { from: string[]; below: string[] }[],
  names: Names,
): Step[] {
  const chatId = NUMBER.test(chat) ? `telegram_${chat}` : chat;
  if (!names.isChatId(chatId)) {
    for (const { from } of files) passOver(source, from, `${chat} is no id of a chat`);
    return [];
  }
  const folders = files.filter(({ below }) => below.length > 2).map(({ below }) => below[1] ?? '');
  const personas = [...new Set(folders)].filter((name) => !NOT_PERSONAS.has(name));
  const only = personas.length === 1 ? personas[0] : undefined;
  const idOf = (persona: string) => {
    if (persona === '1' && only === '1') return 'default';
    return NUMBER.test(persona) ? `persona-${persona.replace('-', '')}` : composed(persona);
  };
  const withFile = new Set(
    files.filter(({ below }) => below.length === 3 && below[2] === 'PERSONA.md').map(({ below }) => below[1]),
  );
  // The conversations of a chat are not said to be anybody's.
  const owner = only !== undefined && names.isPersonaId(idOf(only)) ? idOf(only) : 'default';
  return files.flatMap(({ from, below: [, first = '', second = '', ...rest] }): Step[] => {
    const place = 'groups' as const;
    if (first === 'MEMORY.md' && second === '' && personas.length === 0) {
      return [{ from, place, to: [chatId, 'default', 'MEMORY.md'] }];
    }
    if (first === 'memory' && rest.length === 0 && isDaily(second)) {
      return [{ from, place, to: [chatId, 'memory', second] }];
    }
    if (first === 'conversations' && rest.length === 0) {
      const file = archiveName(second, owner);
      if (file !== null) return [{ from, place, to: [chatId, 'archive', file], text: head(chatId, owner) }];
    }
    const id = idOf(first);
    if (personas.includes(first) && names.isPersonaId(id)) {
      if (rest.length === 0 && (second === 'MEMORY.md' || second === 'PERSONA.md')) {
        const isMade = id !== 'default' && !withFile.has(first);
        return [{ from, place, to: [chatId, id, second] }, ...(isMade ? [personaFile(chatId, id)] : [])];
      }
      if (second === 'memory' && rest.length === 1 && isDaily(rest[0] ?? '')) {
        return [{ from, place, to: [chatId, 'memory', rest[0] ?? ''] }];
      }
    }
    passOver(source, from);
    return [];
  });
}

/** A persona is there once it has this file. */
function personaFile(chatId: string, id: string): Step {
  const text = `---\nname: ${JSON.stringify(id)}\n---\n`;
  return { from: null, place: 'groups', to: [chatId, id, 'PERSONA.md'], text };
}

function isDaily(name: string): boolean {
  return /^\d{4}-\d\d-\d\d\.md$/.test(name);
}

/** `20260131-143000.md` as archives are called here; null: it is none. */
function archiveName(name: string, persona: string): string | null {
  const [, year, month, day, hour, minute, second] =
    /^(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)\.md$/.exec(name) ?? [];
  if (year === undefined) return null;
  return `${year}-${month}-${day}T${hour}-${minute}-${second}-${persona}.md`;
}

/** `flushed`: what was worth remembering was saved by whoever wrote it. */
function head(chatId: string, persona: string): string {
  const fields = { chat: chatId, persona, reason: 'imported from MicroClaw' };
  const lines = Object.entries(fields).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
  return `---\n${lines.join('\n')}\nflushed: true\n---\n\n`;
}

function passOver(source: Source, from: readonly string[], why = 'nothing here has a place for it'): void {
  source.passedOver.push({ path: from.join('/'), why });
}
