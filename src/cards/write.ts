/** Cards out. The original file comes back but for what was edited; a persona without one becomes a card of V3. Pure. */
import { CARD_LIMITS, type WriteAsk, type WriteForm } from '../core/cards.js';
import { commentOf, isJpeg, isWebp } from './exif.js';
import { type Fields, fieldsOf, newCard, withChanges } from './forms.js';
import {
  chunksOf,
  isPng,
  keywordOf,
  type PngChunk,
  plainPicture,
  pngOf,
  textChunk,
  textOfChunk,
  withText,
} from './png.js';
import { cardChunks, iconPath, jsonText } from './read.js';
import { openZip, unpack, withEntries, type Zip } from './zip.js';

export function writeCard(ask: WriteAsk): { file: Buffer; form: WriteForm } {
  const { original, changes, portrait } = ask;
  const came = original === null ? null : formOf(original);
  const form = ask.as ?? came ?? (portrait === null ? 'json' : 'png');
  const isSame = Object.keys(changes.texts).length === 0 && changes.book === undefined;
  if (original !== null && came === form) {
    if (isSame && !portrait?.isEdited) return { file: original, form };
    if (form === 'png') return { file: changedPng(original, ask), form };
    if (form === 'charx') return { file: changedCharx(original, ask), form };
    const text = original.toString('utf8');
    return { file: jsonFile(changed(JSON.parse(text.replace(/^\uFEFF/, '')), ask), text), form };
  }
  const source = original === null ? null : sourceOf(original);
  const card = source === null ? newCard(ask.texts, ask.book) : changed(source, ask);
  if (form === 'json') return { file: jsonFile(card, '{\n  '), form };
  if (form === 'charx') return { file: newCharx(card, portrait?.png ?? null), form };
  return { file: newPng(card, portrait?.png ?? plainPicture()), form };
}

/** YAML, EXIF and other programs' objects are read, but not written: a changed one becomes a card of another form. */
function formOf(original: Buffer): WriteForm | null {
  if (isPng(original)) return 'png';
  const isText = original
    .toString('utf8', 0, 20)
    .replace(/^\uFEFF/, '')
    .trimStart()
    .startsWith('{');
  if (isText) return sourceOf(original) === null ? null : 'json';
  return openZip(original) === null ? null : 'charx';
}

/** The JSON of a card of V1 to V3; null: of another form. */
function sourceOf(original: Buffer): Fields | null {
  if (isPng(original)) {
    const [chunk] = cardChunks(chunksOf(original).chunks);
    return chunk === undefined ? null : sourceIn(chunk);
  }
  const comment = isJpeg(original) || isWebp(original) ? commentOf(original) : null;
  if (comment !== null) return sourceOf(Buffer.from(comment));
  const zip = isJpeg(original) || original.toString('latin1', 0, 2) === 'PK' ? openZip(original) : null;
  const entry = typeof zip === 'object' ? zip?.entries.find(({ name }) => name === 'card.json') : undefined;
  const json = entry ? unpack(zip as Zip, entry, CARD_LIMITS.jsonBytes) : zip === null ? original : null;
  const text =
    json
      ?.toString('utf8')
      .replace(/^\uFEFF/, '')
      .trimStart() ?? '';
  const fields = text.startsWith('{') ? fieldsOf(JSON.parse(text)) : null;
  return fields !== null && !('char_name' in fields) && fields.kind !== 'character' ? fields : null;
}

function sourceIn(chunk: PngChunk): Fields | null {
  const json = jsonText(textOfChunk(chunk, CARD_LIMITS.jsonBytes) ?? '');
  return json === null || json === 'encrypted' ? null : fieldsOf(JSON.parse(json));
}

/** V1 has no place for most texts: it becomes V2 then. */
function changed(source: Fields, { changes, texts }: WriteAsk): Fields {
  const isV1 = fieldsOf(source.data) === null;
  const beyond = [
    'instructions',
    'reminder',
    'greetings',
    'groupGreetings',
    'nickname',
    'note',
    'talkativeness',
  ] as const;
  const grows = changes.book !== undefined || beyond.some((name) => changes.texts[name] !== undefined);
  if (!isV1 || !grows) return withChanges(source, changes);
  const { data } = newCard(texts, changes.book ?? source.character_book ?? null);
  return {
    ...withChanges(source, { texts: changes.texts }),
    spec: 'chara_card_v2',
    spec_version: '2.0',
    data,
  };
}

/** Indented as the text it replaces. */
function jsonFile(card: Fields, like: string): Buffer {
  const indent = /^\s*\{\r?\n([ \t]+)/.exec(like.slice(0, 200))?.[1];
  return Buffer.from(JSON.stringify(card, null, indent));
}

function changedPng(original: Buffer, ask: WriteAsk): Buffer {
  const { chunks } = chunksOf(original);
  const ofCard = new Set(cardChunks(chunks));
  const rewritten = chunks.map((chunk) => {
    const source = ofCard.has(chunk) ? sourceIn(chunk) : null;
    if (source === null) return chunk;
    const json = JSON.stringify(changed(source, ask));
    const isPlain = textOfChunk(chunk, CARD_LIMITS.jsonBytes)?.trimStart().startsWith('{') === true;
    return withText(chunk, isPlain ? json : Buffer.from(json).toString('base64'));
  });
  if (!ask.portrait?.isEdited) return pngOf(rewritten);
  const texts = rewritten.filter((chunk) => keywordOf(chunk) !== '');
  return pngOf(withTexts(ask.portrait.png, texts));
}

/** null: it is no PNG, or not whole. */
export function plainPng(picture: Buffer): Buffer | null {
  if (!isPng(picture)) return null;
  const { chunks, isWhole } = chunksOf(picture);
  return isWhole ? pngOf(chunks.filter((chunk) => keywordOf(chunk) === '')) : null;
}

/** The chunks of a picture, with these texts before its end. */
function withTexts(picture: Buffer, texts: readonly PngChunk[]): PngChunk[] {
  const { chunks } = chunksOf(picture);
  const drawn = chunks.filter((chunk) => keywordOf(chunk) === '');
  return [...drawn.slice(0, -1), ...texts, ...drawn.slice(-1)];
}

function newPng(card: Fields, picture: Buffer): Buffer {
  const text = Buffer.from(JSON.stringify(card)).toString('base64');
  return pngOf(
    withTexts(picture, [textChunk({ keyword: 'chara', text }), textChunk({ keyword: 'ccv3', text })]),
  );
}

const ICON = 'assets/icon/image/main.png';

function newCharx(card: Fields, picture: Buffer | null): Buffer {
  const data = { ...fieldsOf(card.data) };
  if (picture !== null) data.assets = [{ type: 'icon', name: 'main', ext: 'png', uri: `embeded://${ICON}` }];
  const file = Buffer.from(JSON.stringify({ ...card, data }, null, 2));
  return withEntries(
    null,
    new Map([['card.json', file], ...(picture === null ? [] : [[ICON, picture] as const])]),
  );
}

function changedCharx(original: Buffer, ask: WriteAsk): Buffer {
  const zip = openZip(original) as Zip;
  const source = sourceOf(original) as Fields;
  const path = iconPath(source) ?? ICON;
  const card = changed(source, ask);
  const entries = new Map([['card.json', jsonFile(card, '{\n  ')]]);
  if (ask.portrait?.isEdited) entries.set(path, ask.portrait.png);
  return withEntries(zip, entries);
}
