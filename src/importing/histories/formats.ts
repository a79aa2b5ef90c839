/** Formats of JSON: Telegram Desktop's, ChatGPT's, Claude's and SillyTavern's. */
import type { Zone } from '../../core/dates.js';
import {
  badFile,
  type HistoryFormat,
  type HistoryItem,
  idAt,
  isRecord,
  jsonPieces,
  LEFT,
  linesIn,
  occurrences,
  textAt,
  type Wall,
  wallClock,
} from './history.js';

type Fields = Record<string, unknown>;
type Clock = (wall: Wall) => number | null;

const ISO = /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d:?\d\d)?$/;

/** ISO 8601, in the zone if it names none. */
function isoTimeIn(text: string, clock: Clock): number | null {
  const found = ISO.exec(text.trim());
  if (found === null) return null;
  if (found[8] !== undefined) {
    const at = Date.parse(text.trim().replace(' ', 'T'));
    return Number.isFinite(at) ? at : null;
  }
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = found
    .slice(1, 7)
    .map((part) => Number(part ?? 0));
  const ms = Number(`${found[7] ?? ''}000`.slice(0, 3));
  return clock({ year, month, day, hour, minute, second, ms });
}

// ── Telegram Desktop's result.json: of one chat, or of the whole account ───────────────────────────────────

const CHAT = /^\$(?:\.(?:chats|left_chats)\.list\.\*)?$/;
const FIELD = /^(.*)\.(name|type|id)$/;
const MESSAGE = /^(.*)\.messages\.\*$/;
const ON_THE_WAY = /^\$(?:\.(?:chats|left_chats)(?:\.list(?:\.\*(?:\.messages)?)?)?|\.messages)?$/;

function wantedOf(path: string): 'open' | 'whole' | 'skip' {
  if (ON_THE_WAY.test(path)) return 'open';
  const above = FIELD.exec(path)?.[1] ?? MESSAGE.exec(path)?.[1];
  return above !== undefined && CHAT.test(above) ? 'whole' : 'skip';
}

interface TelegramChat {
  name: string;
  type: string;
  id: string;
}

/** Exports before 2021 have no `date_unixtime`. */
function timeOf(message: Fields, clock: Clock): number | null {
  const unix = Number(idAt(message, 'date_unixtime') || Number.NaN);
  const at = Number.isFinite(unix) ? unix * 1000 : isoTimeIn(textAt(message, 'date'), clock);
  return at !== null && Math.abs(at) < MOST_MS ? at : null;
}

const MOST_MS = 8.64e15;

/** A string, or a list of strings and marked pieces. */
function plainText(text: unknown): string {
  if (typeof text === 'string') return text;
  if (!Array.isArray(text)) return '';
  return text
    .map((piece) => (isRecord(piece) ? textAt(piece, 'text') : typeof piece === 'string' ? piece : ''))
    .join('');
}

function wordsOf(message: Fields): string {
  const { poll } = message;
  const words = plainText(message.text) || plainText(message.text_entities);
  const asked = isRecord(poll) ? `[poll] ${textAt(poll, 'question')}` : '';
  const said = [asked, words].filter((part) => part.trim() !== '').join('\n');
  const from = textAt(message, 'forwarded_from').replaceAll(/\s+/g, ' ').slice(0, 80);
  return said === '' || from === '' ? said : `[forwarded from ${from}] ${said}`;
}

function itemOf(message: unknown, chat: TelegramChat, clock: Clock): HistoryItem {
  const label = labelOf(chat);
  const left = (why: string): HistoryItem => ({ kind: 'left', chat: label, why });
  if (!isRecord(message)) return left(LEFT.broken);
  if (message.type !== 'message') return left(LEFT.system);
  const at = timeOf(message, clock);
  if (at === null) return left(LEFT.broken);
  const text = wordsOf(message);
  if (text === '') {
    const hasMedia = ['photo', 'file', 'media_type', 'location_information', 'contact_information'].some(
      (key) => message[key] !== undefined,
    );
    return left(hasMedia ? LEFT.media : LEFT.empty);
  }
  // A bot's own chat: exported by a person, so what is not theirs is the bot's.
  const isBot = chat.type === 'bot_chat' && idAt(message, 'from_id').replace(/^user/, '') === chat.id;
  return {
    kind: 'message',
    key: `telegram ${chat.id || chat.name} ${idAt(message, 'id') || `${at} ${text}`}`,
    at,
    chat: label,
    speaker: textAt(message, 'from') || 'Deleted account',
    role: isBot ? 'persona' : null,
    text,
  };
}

function labelOf({ name, type, id }: TelegramChat): string {
  return name || (type === 'saved_messages' ? 'Saved Messages' : `chat ${id}`);
}

export const telegram: HistoryFormat = {
  label: 'Telegram Desktop’s result.json',

  isIn: (head) =>
    /^\s*\{/.test(head) &&
    !/"guild"\s*:/.test(head) &&
    (/"(?:personal_information|left_chats|chats)"\s*:\s*\{/.test(head) ||
      (/"messages"\s*:\s*\[/.test(head) &&
        /"type"\s*:\s*"(?:\w+_(?:chat|group|supergroup|channel)|saved_messages)"/.test(head))),

  async *read(files, zone: Zone) {
    const clock = wallClock(zone);
    for (const file of files) {
      let chat: TelegramChat = { name: '', type: '', id: '' };
      for await (const piece of jsonPieces(file.name, file.bytes(), wantedOf)) {
        const { path } = piece;
        const [, above, field = ''] = FIELD.exec(path) ?? [];
        if (piece.kind === 'opened') {
          // A chat without a name must not get the last one's.
          if (CHAT.test(path)) chat = { name: '', type: '', id: '' };
          if (path.endsWith('.messages')) yield { kind: 'chat', chat: labelOf(chat), id: chat.id };
        } else if (piece.kind === 'too long') yield { kind: 'left', chat: labelOf(chat), why: LEFT.long };
        else if (above !== undefined) chat = { ...chat, [field]: idAt({ value: piece.value }, 'value') };
        else yield itemOf(piece.value, chat, clock);
      }
    }
  },
};

// ── conversations.json of ChatGPT and of Claude. Of ChatGPT's trees only the way to the current answer counts ─

const USER = 'User';

/** Each conversation is in memory by itself. */
const ofArray = (path: string) => (path === '$' ? 'open' : path === '$.*' ? 'whole' : 'skip');

function readerOf(itemsOf: (conversation: Fields) => Generator<HistoryItem>): HistoryFormat['read'] {
  return async function* read(files) {
    for (const file of files) {
      for await (const piece of jsonPieces(file.name, file.bytes(), ofArray)) {
        if (piece.kind === 'too long') yield { kind: 'left', chat: '', why: LEFT.long };
        else if (piece.kind === 'value' && isRecord(piece.value)) yield* itemsOf(piece.value);
      }
    }
  };
}

const NOT_SAID = 'retries, tools and hidden messages';

/** From the first message to the current one; empty if the tree has no such way. */
function wayTo(current: string, mapping: Fields): { id: string; message: Fields }[] {
  const way: { id: string; message: Fields }[] = [];
  const seen = new Set<string>();
  for (let id = current; id !== '' && !seen.has(id); ) {
    seen.add(id);
    const node = mapping[id];
    if (!isRecord(node)) break;
    if (isRecord(node.message)) way.push({ id, message: node.message });
    id = idAt(node, 'parent');
  }
  return way.reverse();
}

/** Older exports may lack `current_node`: then the leaf that was written last. */
function currentIn(conversation: Fields, mapping: Fields): string {
  const named = idAt(conversation, 'current_node');
  if (isRecord(mapping[named])) return named;
  const leaves = Object.entries(mapping).filter(
    ([, node]) => isRecord(node) && !(Array.isArray(node.children) && node.children.length > 0),
  );
  const timeIn = (node: unknown) =>
    (isRecord(node) && isRecord(node.message) ? seconds(node.message) : null) ?? 0;
  return leaves.sort(([, a], [, b]) => timeIn(b) - timeIn(a))[0]?.[0] ?? '';
}

function seconds(message: Fields): number | null {
  const value = message.create_time;
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

function saidInChatGpt(message: Fields): { words: string } | { why: string } {
  const { author, content, metadata } = message;
  const role = isRecord(author) ? author.role : null;
  const isHidden = isRecord(metadata) && metadata.is_visually_hidden_from_conversation === true;
  const isElsewhere = !['', 'all'].includes(textAt(message, 'recipient'));
  if ((role !== 'user' && role !== 'assistant') || isHidden || isElsewhere || !isRecord(content))
    return { why: NOT_SAID };
  if (content.content_type === 'user_editable_context') return { why: 'custom instructions' };
  if (content.content_type !== 'text' && content.content_type !== 'multimodal_text') return { why: NOT_SAID };
  const parts = Array.isArray(content.parts) ? content.parts : [];
  const words = parts.filter((part) => typeof part === 'string').join('\n');
  if (words.trim() !== '') return { words };
  return { why: parts.some(isRecord) ? LEFT.media : LEFT.empty };
}

function* ofChatGpt(conversation: Fields): Generator<HistoryItem> {
  const chat = textAt(conversation, 'title');
  const mapping = isRecord(conversation.mapping) ? conversation.mapping : {};
  const id = idAt(conversation, 'conversation_id') || idAt(conversation, 'id');
  const way = wayTo(currentIn(conversation, mapping), mapping);
  const all = Object.values(mapping).filter((node) => isRecord(node) && isRecord(node.message)).length;
  for (let n = way.length; n < all; n++) yield { kind: 'left', chat, why: NOT_SAID };
  // Times may be null: then as the message before.
  let at = seconds(conversation);
  for (const { id: node, message } of way) {
    at = seconds(message) ?? at;
    const said = saidInChatGpt(message);
    if ('why' in said) yield { kind: 'left', chat, why: said.why };
    else if (at === null) yield { kind: 'left', chat, why: LEFT.broken };
    else {
      const isUser = isRecord(message.author) && message.author.role === 'user';
      const by = isUser
        ? ({ speaker: USER, role: 'person' } as const)
        : ({ speaker: 'ChatGPT', role: 'persona' } as const);
      yield {
        kind: 'message',
        key: `chatgpt ${id} ${node}`,
        at: Math.round(at * 1000),
        chat,
        ...by,
        text: said.words,
      };
    }
  }
}

export const chatGpt: HistoryFormat = {
  label: 'ChatGPT’s conversations.json',
  isIn: (head) => /^\s*\[\s*\{/.test(head) && /"mapping"\s*:\s*\{/.test(head),
  read: readerOf(ofChatGpt),
};

function* ofClaude(conversation: Fields): Generator<HistoryItem> {
  const chat = textAt(conversation, 'name');
  const messages = Array.isArray(conversation.chat_messages) ? conversation.chat_messages : [];
  for (const [n, message] of messages.entries()) {
    if (!isRecord(message)) continue;
    const pieces = Array.isArray(message.content) ? message.content.filter(isRecord) : [];
    const shown = pieces.filter(({ type }) => type === 'text').map((piece) => textAt(piece, 'text'));
    const text = shown.join('\n').trim() || textAt(message, 'text').trim();
    const at = Date.parse(textAt(message, 'created_at') || textAt(conversation, 'created_at'));
    const hasFiles = ['attachments', 'files'].some(
      (key) => Array.isArray(message[key]) && message[key].length > 0,
    );
    const isUser = message.sender === 'human';
    if (!isUser && message.sender !== 'assistant') yield { kind: 'left', chat, why: NOT_SAID };
    else if (text === '') yield { kind: 'left', chat, why: hasFiles ? LEFT.media : LEFT.empty };
    else if (!Number.isFinite(at)) yield { kind: 'left', chat, why: LEFT.broken };
    else {
      const id = idAt(message, 'uuid') || `${idAt(conversation, 'uuid')} ${n}`;
      const by = isUser
        ? ({ speaker: USER, role: 'person' } as const)
        : ({ speaker: 'Claude', role: 'persona' } as const);
      yield { kind: 'message', key: `claude ${id}`, at, chat, ...by, text };
    }
  }
}

export const claude: HistoryFormat = {
  label: 'Claude’s conversations.json',
  isIn: (head) => /^\s*\[\s*\{/.test(head) && /"chat_messages"\s*:\s*\[/.test(head),
  read: readerOf(ofClaude),
};

// ── SillyTavern: a line of JSON each, the first about the chat. Swipes that were not chosen do not count ───

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
/** `2024-1-5 @13h 02m 05s 123ms` */
const BY_LETTERS =
  /^(\d{4})-(\d{1,2})-(\d{1,2}) ?@ ?(\d{1,2})h ?(\d{1,2})m ?(?:(\d{1,2})s)? ?(?:(\d{1,3})ms)?$/;
/** `January 5, 2024 1:02pm` */
const BY_NAME = /^(\p{L}+) (\d{1,2}), (\d{4}) (\d{1,2}):(\d\d) ?([ap]m)?$/iu;

/** Its versions have written times in four ways. */
export function sentAt(value: unknown, clock: Clock): number | null {
  if (typeof value === 'number' || (typeof value === 'string' && /^\d{12,14}$/.test(value))) {
    const at = Number(value);
    return Number.isFinite(at) && at > 0 && at < 8.64e15 ? at : null;
  }
  if (typeof value !== 'string') return null;
  const [, ...parts] = BY_LETTERS.exec(value) ?? [];
  if (parts.length > 0) {
    const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, ms = 0] = parts.map((part) =>
      Number(part ?? 0),
    );
    return clock({ year, month, day, hour, minute, second, ms });
  }
  const [, name = '', day, year, hour, minute, half = ''] = BY_NAME.exec(value) ?? [];
  const month = MONTHS.indexOf(name.slice(0, 3).toLowerCase()) + 1;
  if (month === 0) return isoTimeIn(value, clock);
  const shift = half === '' ? Number(hour) : (Number(hour) % 12) + (half.toLowerCase() === 'pm' ? 12 : 0);
  return clock({
    year: Number(year),
    month,
    day: Number(day),
    hour: shift,
    minute: Number(minute),
    second: 0,
  });
}

interface Names {
  user: string;
  character: string;
}

function parsed(line: string, name: string, number: number): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(line);
    if (isRecord(value)) return value;
  } catch {
    // Said below.
  }
  throw badFile(`${name} cannot be read in line ${number}: it is not JSON, or cut off. Export it again.`);
}

export const sillyTavern: HistoryFormat = {
  label: 'SillyTavern’s .jsonl',

  isIn(head) {
    const end = head.indexOf('\n');
    const first = (end < 0 ? head : head.slice(0, end)).trim();
    return (
      first.startsWith('{') &&
      /"(?:chat_metadata|character_name|mes)"\s*:/.test(first) &&
      !/"messages"\s*:\s*\[/.test(first)
    );
  },

  async *read(files, zone) {
    const clock = wallClock(zone);
    for (const file of files) {
      let names: Names = { user: 'User', character: '' };
      const timesOf = occurrences();
      let number = 0;
      for await (const lines of linesIn(file.bytes())) {
        for (const line of lines) {
          number++;
          if (line.trim() === '') continue;
          const record = parsed(line, file.name, number);
          if (record.mes === undefined && number === 1) {
            names = {
              user: textAt(record, 'user_name') || 'User',
              character: textAt(record, 'character_name'),
            };
          } else yield lineItem(record, names, clock, timesOf);
        }
      }
    }
  },
};

function lineItem(
  record: Fields,
  names: Names,
  clock: Clock,
  timesOf: ReturnType<typeof occurrences>,
): HistoryItem {
  const chat = '';
  if (record.is_system === true) return { kind: 'left', chat, why: 'notes and hidden messages' };
  const at = sentAt(record.send_date, clock);
  const isUser = record.is_user === true;
  const speaker = textAt(record, 'name') || (isUser ? names.user : names.character) || 'Character';
  const text = textAt(record, 'mes')
    .replaceAll(/\{\{user\}\}/gi, () => names.user)
    .replaceAll(/\{\{char\}\}/gi, () => speaker)
    .trim();
  if (text === '') return { kind: 'left', chat, why: LEFT.empty };
  if (at === null) return { kind: 'left', chat, why: LEFT.broken };
  const said = `${speaker}\n${text}`;
  // As written, so that another zone makes no other message of it.
  const written = String(record.send_date);
  const key = `sillytavern ${written}\n${said}\n${timesOf(written, said)}`;
  // In a group's chat the others are known by name alone.
  const isCharacter = !isUser && speaker === names.character;
  return {
    kind: 'message',
    key,
    at,
    chat,
    speaker,
    role: isUser ? 'person' : isCharacter ? 'persona' : null,
    text,
  };
}
