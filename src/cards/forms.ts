/**
 * The JSON of a card in its forms (V1, V2, V3, Pygmalion, Agnai) and its texts. Read leniently, since every program writes it
 * otherwise; written so that only what was edited changes. Sources: character-card-spec-v2 and -v3; what programs write.
 */
import { CARD_LIMITS, type CardChanges, type CardTexts } from '../core/cards.js';

export type Fields = Record<string, unknown>;

export function fieldsOf(value: unknown): Fields | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : null;
}

const V1_TEXTS = ['description', 'personality', 'scenario', 'first_mes', 'mes_example'] as const;

/** null: the object is no card. */
export function cardIn(value: unknown): { texts: CardTexts; data: Fields; more: Fields } | null {
  const source = fieldsOf(value);
  if (source === null) return null;
  const data = fieldsOf(source.data);
  const isNamed = typeof source.spec === 'string' && source.spec.startsWith('chara_card_');
  if (data !== null && (isNamed || isShaped(data))) return of(data, source);
  if (isNamed || isShaped(source)) return of(source, source);
  const plain = pygmalion(source) ?? agnai(source);
  return plain && of(plain, source);

  function of(from: Fields, top: Fields) {
    // Some programs write the book beside `data` instead of in it.
    const withBook =
      from.character_book == null && top.character_book != null
        ? { ...from, character_book: top.character_book }
        : from;
    return { texts: textsOf(withBook), data: withBook, more: fieldsOf(withBook.extensions) ?? {} };
  }
}

function isShaped(fields: Fields): boolean {
  return 'name' in fields && V1_TEXTS.filter((name) => name in fields).length >= 2;
}

function pygmalion(source: Fields): Fields | null {
  if (!('char_name' in source)) return null;
  return {
    name: source.char_name,
    description: source.char_persona,
    scenario: source.world_scenario,
    first_mes: source.char_greeting,
    mes_example: source.example_dialogue,
  };
}

function agnai(source: Fields): Fields | null {
  if (source.kind !== 'character') return null;
  const attributes = fieldsOf(fieldsOf(source.persona)?.attributes) ?? {};
  const lines = Object.entries(attributes).map(([key, value]) => {
    const words = textsIn(value).join(', ');
    return key === 'text' ? words : `${key}: ${words}`;
  });
  return {
    name: source.name,
    description: lines.join('\n'),
    scenario: source.scenario,
    first_mes: source.greeting,
    mes_example: source.sampleChat,
  };
}

export function textOf(value: unknown): string {
  const text = typeof value === 'string' ? value : typeof value === 'number' ? String(value) : '';
  return text.replace(/\r\n?/g, '\n').trim();
}

/** A text for a list counts as a list of one. */
export function textsIn(value: unknown): string[] {
  const list = Array.isArray(value) ? value : [value];
  return list.map(textOf).filter((text) => text !== '');
}

function textsOf(data: Fields): CardTexts {
  const more = fieldsOf(data.extensions) ?? {};
  const talkativeness = Number.parseFloat(textOf(more.talkativeness));
  return {
    name: textOf(data.name),
    nickname: textOf(data.nickname),
    description: textOf(data.description),
    personality: textOf(data.personality),
    scenario: textOf(data.scenario),
    instructions: textOf(data.system_prompt),
    examples: textOf(data.mes_example),
    reminder: textOf(data.post_history_instructions),
    note: textOf(fieldsOf(more.depth_prompt)?.prompt),
    greeting: textOf(data.first_mes),
    greetings: textsIn(data.alternate_greetings).slice(0, CARD_LIMITS.greetings),
    groupGreetings: textsIn(data.group_only_greetings).slice(0, CARD_LIMITS.greetings),
    talkativeness: talkativeness >= 0 && talkativeness <= 1 ? talkativeness : null,
  };
}

/** Where a text stands in the JSON of V1 to V3. */
const KEYS = {
  ...{ name: 'name', nickname: 'nickname', description: 'description', personality: 'personality' },
  ...{ scenario: 'scenario', instructions: 'system_prompt', examples: 'mes_example' },
  ...{ reminder: 'post_history_instructions', greeting: 'first_mes', greetings: 'alternate_greetings' },
  groupGreetings: 'group_only_greetings',
} as const;

/** The same object with these changes: in `data`, and in V1's copies beside it. */
export function withChanges(source: Fields, { texts, book }: CardChanges): Fields {
  const data = fieldsOf(source.data);
  const changed = { ...(data ?? source) };
  const copies: Fields = {};
  for (const [name, key] of Object.entries(KEYS)) {
    const text = texts[name as keyof typeof KEYS];
    if (text === undefined) continue;
    changed[key] = text;
    if (data !== null && typeof source[key] === 'string') copies[key] = text;
  }
  const more = { ...fieldsOf(changed.extensions) };
  if (texts.talkativeness !== undefined) more.talkativeness = texts.talkativeness;
  if (texts.note !== undefined)
    more.depth_prompt = { depth: 4, role: 'system', ...fieldsOf(more.depth_prompt), prompt: texts.note };
  if (texts.talkativeness !== undefined || texts.note !== undefined) changed.extensions = more;
  if (book !== undefined) changed.character_book = book;
  return data === null ? changed : { ...source, ...copies, data: changed };
}

/** A card of V3 for a persona that has none. */
export function newCard(texts: CardTexts, book: unknown): Fields {
  const { greetings, groupGreetings, talkativeness, note, nickname, ...plain } = texts;
  const extensions: Fields = {};
  if (talkativeness !== null) extensions.talkativeness = talkativeness;
  if (note !== '') extensions.depth_prompt = { prompt: note, depth: 4, role: 'system' };
  return {
    spec: 'chara_card_v3',
    spec_version: '3.0',
    data: {
      ...Object.fromEntries(
        Object.entries(plain).map(([name, text]) => [KEYS[name as keyof typeof plain], text]),
      ),
      ...(nickname !== '' && { nickname }),
      alternate_greetings: greetings,
      group_only_greetings: groupGreetings,
      ...{ creator: '', creator_notes: '', character_version: '', tags: [] },
      ...(book !== null && { character_book: book }),
      extensions,
    },
  };
}
