/**
 * PERSONA.md: YAML front matter, then the character description as Markdown. Reading takes what is valid and reports
 * what is not; editing changes one line.
 */
import { isMap, isScalar, isSeq, stringify } from 'yaml';
import { BOM, encode } from '../core/byte-text.js';
import type { Persona } from '../core/persona.js';
import { documentOf } from '../core/yaml.js';
import { beginsFrontMatter, splitFrontMatter, withFrontMatterKey } from './front-matter.js';
import { withKey } from './yaml-edit.js';

/** What a file itself states; null or empty for what it leaves out. */
export interface PersonaFile {
  name: string | null;
  model: string | null;
  temperature: number | null;
  avatar: string | null;
  voice: string | null;
  aliases: string[] | null;
  tools: string[] | null;
  from: string | null;
  character: string;
  greeting: string | null;
  /** Problems in the front matter, for the operator. */
  faults: string[];
}

export const NO_FILE: PersonaFile = {
  name: null,
  model: null,
  temperature: null,
  avatar: null,
  voice: null,
  aliases: null,
  tools: null,
  from: null,
  character: '',
  greeting: null,
  faults: [],
};

export function readPersonaFile(file: string): PersonaFile {
  const parts = splitFrontMatter(file);
  if (parts === null) {
    const faults = beginsFrontMatter(file) ? ['the front matter has no closing line of ---'] : [];
    return { ...NO_FILE, character: file.trim(), faults };
  }
  const { contents, errors } = documentOf(parts.matter);
  const faults = errors.map(({ message }) => message);
  const map = isMap(contents) ? contents : null;
  if (contents !== null && map === null) faults.push('the front matter should be lines of "key: value"');
  return {
    name: text('name'),
    model: text('model'),
    temperature: temperature(),
    avatar: text('avatar'),
    voice: text('voice'),
    aliases: names('aliases'),
    tools: names('tools'),
    from: text('from'),
    character: parts.body.trim(),
    greeting: greeting(),
    faults,
  };

  function value(key: string): unknown {
    return map?.get(key) ?? null;
  }

  function fault(message: string): null {
    faults.push(message);
    return null;
  }

  function text(key: string): string | null {
    const found = value(key);
    if (isText(found)) return oneLine(found) || null;
    return found === null ? null : fault(`"${key}" should be a text`);
  }

  /** The one text that may have several lines. */
  function greeting(): string | null {
    const found = value('greeting');
    if (isText(found)) return String(found).trim() || null;
    return found === null ? null : fault('"greeting" should be a text');
  }

  function temperature(): number | null {
    const found = value('temperature');
    if (found === null || (typeof found === 'number' && found >= 0 && found <= 2)) return found;
    return fault('"temperature" should be a number from 0 to 2');
  }

  function names(key: string): string[] | null {
    const found = value(key);
    if (found === null) return null;
    const list = isSeq(found) ? found.items.map((item) => (isScalar(item) ? item.value : item)) : [found];
    if (!list.every(isText)) return fault(`"${key}" should be a list of names`);
    return list.map(oneLine).filter((name) => name !== '');
  }
}

/** Numbers as well, for a name such as 007. */
function isText(value: unknown): value is string | number {
  return typeof value === 'string' || typeof value === 'number';
}

function oneLine(value: string | number): string {
  return String(value)
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
}

/** A file that states only a name and leaves the rest to the library. */
export function freshPersonaFile(name: string, from: string | null): string {
  return `---\n${stringify(from === null ? { name } : { name, from }, { lineWidth: 0 })}---\n`;
}

/** The file with a different model and every other byte preserved; null if it cannot be edited reliably. */
export function withModel(file: Buffer, model: string): Buffer | null {
  const text = file.toString('utf8');
  const edited = beginsFrontMatter(text) ? withFrontMatterKey(file, 'model', model) : withMatter(file, model);
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

/** Values that the file leaves out come from the library; a name that only repeats the id counts as left out. */
export function inherit(id: string, from: string | null, own: PersonaFile, library: PersonaFile): Persona {
  const ownName = own.name === id && from === null ? null : own.name;
  return {
    id,
    name: ownName ?? library.name ?? id,
    model: own.model ?? library.model,
    temperature: own.temperature ?? library.temperature,
    avatar: own.avatar ?? library.avatar,
    voice: own.voice ?? library.voice,
    aliases: own.aliases ?? library.aliases ?? [],
    tools: own.tools ?? library.tools,
    from,
    character: own.character || library.character,
    greeting: own.greeting ?? library.greeting,
  };
}
