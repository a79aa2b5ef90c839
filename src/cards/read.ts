/** A file that somebody sent, as a card: recognised by its content, never by its name. Nothing of it runs, nothing is fetched. Pure. */
import { CARD_LIMITS, type Card, type CardForm, type CardTexts, type ReadFile } from '../core/cards.js';
import { cutWithMarker } from '../core/cut.js';
import { documentOf } from '../core/file-text.js';
import { readLorebook } from '../core/lorebook.js';
import { commentOf, isJpeg, isWebp } from './exif.js';
import { cardIn, type Fields, fieldsOf, textOf } from './forms.js';
import { chunksOf, isIntact, isPng, keywordOf, type PngChunk, textOfChunk } from './png.js';
import { openZip, unpack, type Zip } from './zip.js';

const { jsonBytes, portraitBytes, fieldChars, greetings: mostGreetings } = CARD_LIMITS;

const NO_CARD = { kind: 'other' } as const;
const refused = (reason: string) => ({ kind: 'refused', reason }) as const;
const TRUNCATED = refused('The file is cut off; please send it again.');
const DAMAGED = refused('The file is damaged; please send it again.');
const NO_JSON = refused('The card in it is no valid JSON, or is nested too deeply.');
const ENCRYPTED = refused('The card is encrypted; please export it without a password.');
const TOO_LARGE = refused('The card is larger than 16 MB.');

export function readCardFile(file: Buffer): ReadFile {
  if (isPng(file)) return fromPng(file);
  if (isJpeg(file)) return fromComment(file, 'jpeg') ?? fromZip(file, file) ?? NO_CARD;
  if (isWebp(file)) return fromComment(file, 'webp') ?? NO_CARD;
  if (file.toString('latin1', 0, 2) === 'PK') return fromZip(file, null) ?? NO_CARD;
  return fromText(file);
}

/** A picture with such a chunk is not read for this: that would take its memory twice. */
export function isCardFile(file: Buffer): boolean {
  return (isPng(file) && cardChunks(chunksOf(file).chunks).length > 0) || readCardFile(file).kind !== 'other';
}

/** Chunks of a card, the one that counts first. */
export function cardChunks(chunks: readonly PngChunk[]): PngChunk[] {
  const named = (keyword: string) => chunks.filter((chunk) => keywordOf(chunk).toLowerCase() === keyword);
  return [...named('ccv3'), ...named('chara')];
}

function fromPng(file: Buffer): ReadFile {
  const { chunks, isWhole } = chunksOf(file);
  const [chunk] = cardChunks(chunks);
  if (chunk === undefined) return isWhole ? NO_CARD : fromCut(chunks);
  if (!isWhole) return TRUNCATED;
  if (!isIntact(chunk)) return DAMAGED;
  const text = textOfChunk(chunk, jsonBytes);
  if (text === null) return refused('The card in it cannot be unpacked, or is larger than 16 MB.');
  return fromJson(text, 'png', file);
}

/** A picture that breaks off may have had a card; one without text is an ordinary picture. */
function fromCut(chunks: readonly PngChunk[]): ReadFile {
  return chunks.some((chunk) => keywordOf(chunk) !== '') ? TRUNCATED : NO_CARD;
}

function fromComment(picture: Buffer, form: CardForm): ReadFile | null {
  const comment = commentOf(picture);
  if (comment === null) return null;
  const read = fromJson(comment, form, picture);
  // Cameras write comments, too.
  return read.kind === 'card' ? read : null;
}

/** JSON, or base64 of it. */
export function jsonText(text: string): string | 'encrypted' | null {
  const words = text.replace(/^\uFEFF/, '').trim();
  if (words.startsWith('rcc||')) return 'encrypted';
  if (words.startsWith('{')) return words;
  const packed = words.replace(/\s+/g, '');
  if (!/^[A-Za-z0-9+/_-]+=*$/.test(packed)) return null;
  const decoded = Buffer.from(packed, 'base64')
    .toString('utf8')
    .replace(/^\uFEFF/, '')
    .trim();
  if (decoded.startsWith('rcc||')) return 'encrypted';
  return decoded.startsWith('{') ? decoded : null;
}

function fromJson(text: string, form: CardForm, portrait: Buffer | null): ReadFile {
  const json = jsonText(text);
  if (json === 'encrypted') return ENCRYPTED;
  const value = json === null ? undefined : parsedJson(json);
  if (value === undefined) return NO_JSON;
  return cardOf(value, form, portrait) ?? refused('There is no card in it.');
}

function parsedJson(json: string): unknown {
  if (isDeep(json)) return undefined;
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

/** Cards have some ten levels. A million would take hundreds of megabytes, and the stack of whatever walks through them. */
const MOST_LEVELS = 200;

/** In linear time, whatever stands there. */
function isDeep(json: string): boolean {
  let level = 0;
  for (let at = 0; at < json.length; at++) {
    const sign = json[at];
    if (sign === '"') at = endOfString(json, at);
    else if (sign === ']' || sign === '}') level--;
    else if ((sign === '[' || sign === '{') && ++level > MOST_LEVELS) return true;
  }
  return false;
}

/** Where its quotation mark stands. */
function endOfString(json: string, start: number): number {
  for (let at = start; ; ) {
    at = json.indexOf('"', at + 1);
    if (at < 0) return json.length;
    let slashes = 0;
    while (json[at - 1 - slashes] === '\\') slashes++;
    if (slashes % 2 === 0) return at;
  }
}

function fromText(file: Buffer): ReadFile {
  const head = file
    .toString('utf8', 0, 200)
    .replace(/^\uFEFF/, '')
    .trimStart();
  if (!head.startsWith('{')) return file.length <= 65_536 ? fromYaml(file.toString('utf8')) : NO_CARD;
  if (file.length > jsonBytes) return /chara_card_|lorebook_v3/.test(head) ? TOO_LARGE : NO_CARD;
  const value = parsedJson(file.toString('utf8').replace(/^\uFEFF/, ''));
  // Other people's JSON need not be valid.
  if (value === undefined) return /"spec"\s*:\s*"(?:chara_card|lorebook)_/.test(head) ? NO_JSON : NO_CARD;
  const card = cardOf(value, 'json', null);
  if (card !== null) return card;
  return isLorebook(value) ? lorebookOf(value) : NO_CARD;
}

/** The form of text-generation-webui. */
function fromYaml(text: string): ReadFile {
  if (!/^(?:name|context|greeting)\s*:/m.test(text)) return NO_CARD;
  const { contents, errors } = documentOf(text);
  const fields = errors.length > 0 ? null : fieldsOf(contents?.toJSON());
  if (!fields || !('name' in fields) || !('context' in fields || 'greeting' in fields)) return NO_CARD;
  const { name, context, greeting } = fields;
  return (
    cardOf({ name, description: context, personality: '', first_mes: greeting }, 'yaml', null) ?? NO_CARD
  );
}

/** `{entries: …}` of other programs is one only if it holds such entries. */
function isLorebook(value: unknown): boolean {
  const fields = fieldsOf(value);
  if (fields?.spec === 'lorebook_v3') return true;
  const entries = fields?.entries;
  if (typeof entries !== 'object' || entries === null) return false;
  const [first] = Object.values(entries).map(fieldsOf);
  return Boolean(first && 'content' in first && ('keys' in first || 'key' in first));
}

function lorebookOf(value: unknown): ReadFile {
  const read = readLorebook(value, '');
  if (read === null) return refused('The lorebook in it has no entries.');
  const [over] = read.over;
  if (over !== undefined) return refused(`The lorebook in it has ${over}.`);
  return { kind: 'lorebook', book: value, leftOut: read.leftOut };
}

/** `picture`: the JPEG before the archive. null: no CHARX. */
function fromZip(file: Buffer, picture: Buffer | null): ReadFile | null {
  try {
    const zip = openZip(file);
    if (zip === null) return picture === null ? TRUNCATED : null;
    if (zip === 'too many') return refused('The archive has more than 2,000 files.');
    const entry = zip.entries.find(({ name }) => name === 'card.json');
    if (entry === undefined) return picture === null ? NO_CARD : null;
    if (entry.isEncrypted) return ENCRYPTED;
    const json = unpack(zip, entry, jsonBytes);
    if (json === null) return TOO_LARGE;
    const value = parsedJson(json.toString('utf8').replace(/^\uFEFF/, ''));
    if (value === undefined) return NO_JSON;
    const read = cardOf(value, 'charx', null);
    if (read === null) return refused('There is no card in it.');
    if (read.kind !== 'card') return read;
    const { card } = read;
    const hasScripts = zip.entries.some(({ name }) => name.endsWith('module.risum'));
    if (hasScripts && !card.leftOut.includes('scripts')) card.leftOut.push('scripts');
    const portrait = portraitIn(zip, value);
    if (portrait === 'not unpacked')
      return refused('The portrait in it cannot be unpacked, or is larger than 16 MB.');
    card.portrait = portrait ?? picture?.subarray(0, zip.start) ?? null;
    return read;
  } catch (error) {
    if (error instanceof RangeError) return picture === null ? DAMAGED : null;
    throw error;
  }
}

/** The first icon, the one named `main` before others. */
export function iconPath(value: unknown): string | null {
  const source = fieldsOf(value);
  const assets = (fieldsOf(source?.data) ?? source)?.assets;
  const icons = (Array.isArray(assets) ? assets : [])
    .map(fieldsOf)
    .filter((asset) => asset !== null && asset.type === 'icon');
  const main = icons.find((icon) => icon?.name === 'main') ?? icons[0];
  return /^embedd?ed:\/\/(.+)$/.exec(textOf(main?.uri))?.[1] ?? null;
}

/** null: there is none. */
function portraitIn(zip: Zip, value: unknown): Buffer | 'not unpacked' | null {
  const path = iconPath(value);
  const entry = path === null ? undefined : zip.entries.find(({ name }) => name === path);
  return entry === undefined ? null : (unpack(zip, entry, portraitBytes) ?? 'not unpacked');
}

function cardOf(value: unknown, form: CardForm, portrait: Buffer | null): ReadFile | null {
  const found = cardIn(value);
  if (found === null) return null;
  const { data, more } = found;
  const book = data.character_book ?? null;
  const lore = readLorebook(book, '');
  const isOver = [data.alternate_greetings, data.group_only_greetings].some(
    (greetings) => listOf(greetings).length > mostGreetings,
  );
  const [over] = isOver ? [`more than ${mostGreetings} greetings`] : (lore?.over ?? []);
  if (over !== undefined) return refused(`The card has ${over}.`);
  const leftOut = new Set(lore?.leftOut);
  const texts = shortened(withoutTags(found.texts, more, leftOut), leftOut);
  if (listOf(more.regex_scripts).length > 0) leftOut.add('regular expressions');
  if (SCRIPTS.some((name) => more[name] != null) || hasRisuScripts(more)) leftOut.add('scripts');
  const assets = listOf(data.assets).map(fieldsOf);
  if (assets.some((asset) => asset !== null && asset.type !== 'icon'))
    leftOut.add('assets that are not the portrait');
  const version = Number.parseFloat(textOf(fieldsOf(value)?.spec_version));
  const card: Card = {
    ...{ form, texts, book, portrait },
    creatorNotes: textOf(data.creator_notes) || textOf(fieldsOf(value)?.creatorcomment),
    newer: version > 3 ? textOf(fieldsOf(value)?.spec_version).slice(0, 10) : null,
    leftOut: [...leftOut],
  };
  return { kind: 'card', card };
}

/** Keys under which programs keep code. */
const SCRIPTS = ['tavern_helper', 'TavernHelper_scripts', 'xiaobaix-tasks', 'xiaobaix_tasks'];

function hasRisuScripts(more: Fields): boolean {
  const risu = fieldsOf(more.risuai);
  return ['customScripts', 'triggerscript', 'virtualscript'].some((name) => listOf(risu?.[name]).length > 0);
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Without elements in greetings that the card's own expressions would have replaced; these are not run. */
function withoutTags(texts: CardTexts, more: Fields, leftOut: Set<string>): CardTexts {
  const patterns = listOf(more.regex_scripts).map((script) => textOf(fieldsOf(script)?.findRegex));
  const names = new Set(
    patterns.flatMap((pattern) =>
      [...pattern.matchAll(/<\\?\/?([A-Za-z_]\w{0,60})/g)].map(([, name]) => name as string),
    ),
  );
  if (names.size === 0) return texts;
  const clean = (text: string) => {
    const cleaned = [...names].reduce((left, name) => withoutElement(left, name), text).trim();
    if (cleaned !== text) leftOut.add('tags for its scripts');
    return cleaned;
  };
  return {
    ...texts,
    greeting: clean(texts.greeting),
    greetings: texts.greetings.map(clean).filter((text) => text !== ''),
    groupGreetings: texts.groupGreetings.map(clean).filter((text) => text !== ''),
  };
}

/** One pass over its tags: an element ends with the next closing tag of its name; without one it is empty. */
function withoutElement(text: string, name: string): string {
  const tag = new RegExp(`<(/?)${name}\\b[^<>]*>`, 'gi');
  let kept = '';
  let from = 0;
  let openedAt: number | null = null;
  for (const { 0: sign, 1: slash, index } of text.matchAll(tag)) {
    if (slash === '' && openedAt === null) {
      kept += text.slice(from, index);
      openedAt = sign.endsWith('/>') ? null : index + sign.length;
      from = index + sign.length;
    } else if (slash !== '') {
      if (openedAt === null) kept += text.slice(from, index);
      openedAt = null;
      from = index + sign.length;
    }
  }
  return kept + text.slice(from);
}

function shortened(texts: CardTexts, leftOut: Set<string>): CardTexts {
  const short = (name: string, text: string) => {
    if (text.length <= fieldChars) return text;
    leftOut.add(`the end of its ${name}`);
    return cutWithMarker(text, fieldChars, 'card-field-max-chars');
  };
  const shorter = (name: string, value: unknown): unknown => {
    if (Array.isArray(value)) return value.map((each) => shorter('greetings', each));
    return typeof value === 'string' ? short(name, value) : value;
  };
  return Object.fromEntries(
    Object.entries(texts).map(([name, value]) => [name, shorter(name, value)]),
  ) as unknown as CardTexts;
}
