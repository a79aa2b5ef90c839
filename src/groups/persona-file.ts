/** PERSONA.md: YAML front matter, then the character. Uses the valid parts and reports the rest. */
import { isMap, isScalar, isSeq, stringify } from 'yaml';
import type { CardTexts } from '../core/cards.js';
import { cutAt, inOneLine } from '../core/cut.js';
import {
  BOM,
  beginsFrontMatter,
  documentOf,
  encode,
  LARGE,
  splitFrontMatter,
  withFrontMatterKey,
  withKey,
} from '../core/file-text.js';
import { type CharacterParts, NO_PARTS, type Persona } from '../core/persona.js';
import { TOOL_GROUPS } from '../core/tool.js';

/** The values in the file; null or empty if absent. */
export interface PersonaFile extends Omit<Persona, 'id' | 'name' | 'aliases' | 'portrait'> {
  name: string | null;
  aliases: string[] | null;
  /** Written for another program, whose model names mean nothing here. */
  isForeign: boolean;
  faults: string[];
}

export function readPersonaFile(file: string): PersonaFile {
  const parts = splitFrontMatter(file);
  if (parts === null) {
    const faults = beginsFrontMatter(file) ? ['the front matter has no closing line of ---'] : [];
    return { ...NO_FILE, ...inSections(file), faults };
  }
  const { value, text, texts, names, numberUpTo, yesOrNo, fault, faults } = keysIn(parts.matter);
  const modelNamed = text('model');
  const toolsNamed = names('tools');
  // In Claude Code's format: a description is required there, and unknown here.
  const isOthers =
    ALIASES.test(modelNamed ?? '') ||
    value('description') !== null ||
    (toolsNamed ?? []).some((name) => !GROUPS.has(name));
  return {
    name: text('name'),
    // Other programs write this for the default.
    model: modelNamed === 'inherit' ? null : modelNamed,
    isForeign: isOthers && value('any_model') !== true,
    temperature: numberUpTo('temperature', 2),
    avatar: text('avatar'),
    voice: text('voice'),
    aliases: names('aliases'),
    tools: value('tools') === '' ? null : knownTools(toolsNamed, fault),
    from: text('from'),
    ...inSections(parts.body),
    card: text('card'),
    trusted: yesOrNo('trusted') ?? false,
    guard: yesOrNo('guard'),
    greeting: text('greeting', (words) => words.trim()),
    greetings: texts('greetings'),
    groupGreetings: texts('group_greetings'),
    talkativeness: numberUpTo('talkativeness', 1),
    faults,
  };
}

/** Readers of the keys; a value that is not as expected is a fault, and absent. */
function keysIn(matter: string) {
  const { contents, errors } = documentOf(matter, LARGE);
  const faults = errors.map(({ message }) => message);
  const map = isMap(contents) ? contents : null;
  if (contents !== null && map === null) faults.push('the front matter should be lines of "key: value"');
  return { value, text, texts, names, numberUpTo, yesOrNo, fault, faults };

  function value(key: string): unknown {
    return map?.get(key) ?? null;
  }

  function fault(message: string): null {
    faults.push(message);
    return null;
  }

  function text(key: string, shaped: (words: string) => string = (words) => inOneLine(words)): string | null {
    const found = value(key);
    if (isText(found)) return shaped(String(found)) || null;
    return found === null ? null : fault(`"${key}" should be a text`);
  }

  function yesOrNo(key: string): boolean | null {
    const found = value(key);
    if (found === null || typeof found === 'boolean') return found;
    return fault(`"${key}" should be true or false`);
  }

  function numberUpTo(key: string, most: number): number | null {
    const found = value(key);
    const number = typeof found === 'string' && found.trim() !== '' ? Number(found) : found;
    if (number === null || (typeof number === 'number' && number >= 0 && number <= most)) return number;
    return fault(`"${key}" should be a number from 0 to ${most}`);
  }

  function texts(key: string): string[] {
    const found = value(key);
    const list = isSeq(found) ? found.items.map((item) => (isScalar(item) ? item.value : item)) : [found];
    if (found === null) return [];
    if (!list.every(isText)) return fault(`"${key}" should be a list of texts`) ?? [];
    return list.map((words) => String(words).trim()).filter((words) => words !== '');
  }

  /** A list, or comma-separated text. */
  function names(key: string): string[] | null {
    const found = value(key);
    if (found === null) return null;
    const items = typeof found === 'string' ? found.split(',') : [found];
    const list = isSeq(found) ? found.items.map((item) => (isScalar(item) ? item.value : item)) : items;
    if (!list.every(isText)) return fault(`"${key}" should be a list of names`);
    return list.map((name) => inOneLine(String(name))).filter((name) => name !== '');
  }
}

const SECTIONS = ['personality', 'scenario', 'instructions', 'examples', 'reminder', 'note'] as const;
const SECTION = /^## (personality|scenario|instructions|examples|reminder|note)[ \t]*$/i;

/** The description, and the sections below it. */
function inSections(body: string): { character: string; parts: CharacterParts } {
  const lines = body.split(/\r?\n/);
  const begins = lines.flatMap((line, n) => {
    const name = SECTION.exec(line)?.[1]?.toLowerCase();
    return name === undefined ? [] : [{ name, n }];
  });
  const found: Record<string, string> = {};
  for (const [at, { name, n }] of begins.entries()) {
    const text = lines
      .slice(n + 1, begins[at + 1]?.n)
      .join('\n')
      .trim();
    found[name] = [found[name] ?? '', text].filter((each) => each !== '').join('\n\n');
  }
  const first = begins[0];
  if (first === undefined) return { character: body.trim(), parts: NO_PARTS };
  return { character: lines.slice(0, first.n).join('\n').trim(), parts: { ...NO_PARTS, ...found } };
}

/** Files for other programs name tools of theirs: known groups count, plus memory; without any, the key is absent. */
function knownTools(toolsNamed: string[] | null, fault: (message: string) => null): string[] | null {
  if (toolsNamed === null) return null;
  const known = toolsNamed.filter((name) => GROUPS.has(name));
  const unknown = toolsNamed.filter((name) => !GROUPS.has(name));
  if (unknown.length === 0) return toolsNamed;
  const kept = known.length === 0 ? null : [...new Set(['memory', ...known])];
  const now = kept === null ? 'the key counts as left out' : `it has ${kept.join(', ')}`;
  const which = unknown.slice(0, MOST_TOLD).map((name) => JSON.stringify(cutAt(name, 40)));
  const more = unknown.length > MOST_TOLD ? ', …' : '';
  fault(`"tools" names ${which.join(', ')}${more}, and there are only: ${TOOL_GROUPS.join(', ')}; ${now}`);
  return kept;
}

/** Claude Code's own names of models. */
const ALIASES = /^(?:sonnet|opus|haiku|opusplan|best)(?:\[1m\])?$/i;
const GROUPS: ReadonlySet<string> = new Set(TOOL_GROUPS);
const MOST_TOLD = 10;

/** Includes numbers, for a name such as 007. */
function isText(value: unknown): value is string | number {
  return typeof value === 'string' || typeof value === 'number';
}

/** For a missing file: all values are absent. */
export const NO_FILE = readPersonaFile('---\n---\n');

/** All else comes from the library. */
export function freshPersonaFile(name: string, from: string | null, character = ''): string {
  const words = character.trim();
  const matter = stringify(from === null ? { name } : { name, from }, { lineWidth: 0 });
  return `---\n${matter}---\n${words === '' ? '' : `\n${words}\n`}`;
}

/** A heading of ours in somebody else's text is indented, so that it begins no section. */
const HEADINGS = /^(?=## (?:personality|scenario|instructions|examples|reminder|note)[ \t]*$)/gim;

/** Of a card. `matter`: further keys. */
export function cardPersonaFile(texts: CardTexts, matter: Record<string, unknown>): string {
  const { greeting, greetings, groupGreetings, talkativeness } = texts;
  const keys = {
    ...matter,
    ...(greeting !== '' && { greeting }),
    ...(greetings.length > 0 && { greetings }),
    ...(groupGreetings.length > 0 && { group_greetings: groupGreetings }),
    ...(talkativeness !== null && { talkativeness }),
  };
  const sections = SECTIONS.flatMap((name) => {
    const text = texts[name];
    return text === ''
      ? []
      : [`## ${name[0]?.toUpperCase()}${name.slice(1)}\n\n${text.replace(HEADINGS, ' ')}`];
  });
  const body = [texts.description.replace(HEADINGS, ' '), ...sections].filter((text) => text !== '');
  return `---\n${stringify(keys, { lineWidth: 0 })}---\n\n${body.join('\n\n')}\n`;
}

/** Of a persona, as a card has them. */
export function cardTextsOf(file: PersonaFile, name: string): CardTexts {
  const { parts, greetings, groupGreetings, talkativeness } = file;
  const nickname = '';
  return {
    ...{ name, nickname, description: file.character, ...parts },
    ...{ greeting: file.greeting ?? '', greetings, groupGreetings, talkativeness },
  };
}

/** null if it cannot be edited reliably. `models`: those that other programs' files may name; null: any. */
export function withModel(file: Buffer, model: string, models: readonly string[] | null): Buffer | null {
  const text = file.toString('utf8');
  const named = beginsFrontMatter(text) ? withFrontMatterKey(file, 'model', model) : withMatter(file, model);
  const isOthers =
    named !== null && readPersonaFile(named.toString('utf8')).isForeign && models?.includes(model) === false;
  const edited = isOthers ? withFrontMatterKey(named, 'any_model', true) : named;
  return edited !== null && readPersonaFile(edited.toString('utf8')).model === model ? edited : null;
}

function withMatter(file: Buffer, model: string): Buffer | null {
  const source = file.toString('latin1');
  const bom = source.startsWith(BOM) ? BOM : '';
  const eol = source.includes('\r\n') ? '\r\n' : '\n';
  const matter = withKey('', 'model', model)?.trimEnd();
  if (matter === undefined) return null;
  const top = `${bom}---${eol}${encode(matter)}${eol}---${eol}`;
  return Buffer.from(top + source.slice(bom.length), 'latin1');
}
