/** MicroClaw's `groups/`: `<chat>/<persona>/MEMORY.md`, or `<channel>/<chat>/` with AGENTS.md, USER.md and SOUL.md. */
import { composed } from '../core/file-names.js';
import {
  filesBelow,
  type ImportNames,
  type ImportPlan,
  type ImportSource,
  type ImportStep,
  passOver,
} from './source.js';

const NOT_PERSONAS = new Set(['memory', 'conversations', 'archive', 'browser-profile', 'context']);
/** Files that the present layout has directly in a chat's folder. */
const OF_CHAT = new Set(['AGENTS.md', 'USER.md', 'SOUL.md']);
const NUMBER = /^-?\d{1,20}$/;

export async function planOfGroups(source: ImportSource, names: ImportNames): Promise<ImportPlan> {
  const plan: ImportPlan = { steps: [], found: [] };
  for (const base of [['groups'], ['runtime', 'groups']]) {
    const files = await filesBelow(source, base);
    const steps = stepsOf(source, base, files, names);
    if (steps.length > 0) plan.found.push(`groups of MicroClaw (${base.join('/')}/)`);
    plan.steps.push(...steps);
  }
  return plan;
}

interface MicroclawFile {
  from: string[];
  /** Path below `groups/`, later below the chat's folder. */
  below: string[];
}

function stepsOf(source: ImportSource, base: string[], files: string[][], names: ImportNames): ImportStep[] {
  const inGroups = files.map((from): MicroclawFile => ({ from, below: from.slice(base.length) }));
  const steps: ImportStep[] = [];
  const chats = new Map<string, MicroclawFile[]>();
  const add = (chatId: string, from: string[], below: string[]) =>
    chats.set(chatId, [...(chats.get(chatId) ?? []), { from, below }]);
  for (const { from, below } of inGroups) {
    const [first = '', second = ''] = below;
    if (below.length === 1 && first === 'AGENTS.md') {
      steps.push({ from, place: 'groups', to: ['AGENTS.md'], isAlwaysBeside: true });
    } else if (below.length === 1) passOver(source, from);
    else if (below.length > 2 && NUMBER.test(second) && !names.isChatId(first) && !NUMBER.test(first)) {
      if (!names.channels.includes(first)) passOver(source, from, `there is no channel ${first} here`);
      else add(`${first}_${second}`, from, below.slice(2));
    } else if (below.length === 2 && names.channels.includes(first)) {
      passOver(
        source,
        from,
        'it is of a whole channel: what holds for all chats belongs into groups/AGENTS.md',
      );
    } else {
      const chatId = NUMBER.test(first) ? `telegram_${first}` : first;
      if (names.isChatId(chatId)) add(chatId, from, below.slice(1));
      else passOver(source, from, `${first} is no id of a chat`);
    }
  }
  for (const [chatId, ofChat] of chats) steps.push(...stepsOfChat(source, chatId, ofChat, names));
  return steps;
}

function stepsOfChat(
  source: ImportSource,
  chatId: string,
  files: MicroclawFile[],
  names: ImportNames,
): ImportStep[] {
  const folders = files.filter(({ below }) => below.length > 1).map(({ below }) => below[0] ?? '');
  const personas = [...new Set(folders)].filter((name) => !NOT_PERSONAS.has(name));
  const only = personas.length === 1 ? personas[0] : undefined;
  const idOf = (persona: string) => {
    if (persona === '1' && only === '1') return 'default';
    return NUMBER.test(persona) ? `persona-${persona.replace('-', '')}` : composed(persona);
  };
  const withFile = new Set(
    files.filter(({ below }) => below.length === 2 && below[1] === 'PERSONA.md').map(({ below }) => below[0]),
  );
  // A chat's conversations name no persona.
  const owner = only !== undefined && names.isPersonaId(idOf(only)) ? idOf(only) : 'default';
  const place = 'groups' as const;
  const steps = files.flatMap(({ from, below: [first = '', second = '', ...rest] }): ImportStep[] => {
    if (second === '' && OF_CHAT.has(first)) return [];
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
  return withPresent(steps, chatId, files);
}

/** AGENTS.md and USER.md are the memory, SOUL.md the character, of the persona that always exists. */
function withPresent(steps: ImportStep[], chatId: string, files: MicroclawFile[]): ImportStep[] {
  const called = (name: string) => files.filter(({ below }) => below.join('/') === name);
  const place = 'groups' as const;
  const to = [chatId, 'default', 'MEMORY.md'];
  const souls = called('SOUL.md').map(
    ({ from }): ImportStep => ({ from, place, to: [chatId, 'default', 'PERSONA.md'] }),
  );
  const known = [...called('AGENTS.md'), ...called('USER.md')];
  // Next to a file of the older layout it would never be read, so it is appended to that.
  const older = steps.find((step) => step.to.join('/') === to.join('/'));
  const others = older === undefined ? known.slice(1) : known;
  const headingOf = (from: string[]) => (from.at(-1) === 'USER.md' ? 'About the user' : 'Further memory');
  const more = others.map(({ from }) => ({ from, heading: headingOf(from) }));
  if (older !== undefined)
    return [...steps.map((step) => (step === older ? { ...older, more } : step)), ...souls];
  const [first] = known;
  return [...steps, ...souls, ...(first === undefined ? [] : [{ from: first.from, place, to, more }])];
}

/** A persona exists once it has this file. */
function personaFile(chatId: string, id: string): ImportStep {
  const text = `---\nname: ${JSON.stringify(id)}\n---\n`;
  return { from: null, place: 'groups', to: [chatId, id, 'PERSONA.md'], text };
}

function isDaily(name: string): boolean {
  return /^\d{4}-\d\d-\d\d\.md$/.test(name);
}

/** `20260131-143000.md` as the name of an archive here; null for any other name. */
function archiveName(name: string, persona: string): string | null {
  const [, year, month, day, hour, minute, second] =
    /^(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)\.md$/.exec(name) ?? [];
  if (year === undefined) return null;
  return `${year}-${month}-${day}T${hour}-${minute}-${second}-${persona}.md`;
}

/** `flushed`: the former program has already saved the memories. */
function head(chatId: string, persona: string): string {
  const fields = { chat: chatId, persona, reason: 'imported from MicroClaw' };
  const lines = Object.entries(fields).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
  return `---\n${lines.join('\n')}\nflushed: true\n---\n\n`;
}
