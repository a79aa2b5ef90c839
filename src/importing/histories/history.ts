/**
 * One form for the messages of all chat histories. Readers are pure: files in, messages and what is left out. Common to them:
 * lines of a text and values of JSON out of files of any size, and times without a zone. The JSON is read by code of our own
 * because a value's size has to be bounded before it is in memory.
 */
import { StringDecoder } from 'node:string_decoder';
import type { Zone } from '../../core/dates.js';
import { Fault } from '../../core/errors.js';

/** A file, or an entry of a zip. Its name is only shown and compared, never a path. */
export interface HistoryFile {
  name: string;
  /** From the beginning, as often as it is called. */
  bytes(): AsyncIterable<Buffer>;
}

export interface HistoryMessage {
  kind: 'message';
  /** The same in each export of the same chat, and another for each message. */
  key: string;
  /** ms */
  at: number;
  /** Of the chat in the export. */
  chat: string;
  /** As in the file: nothing about it can be trusted. */
  speaker: string;
  /** Where the format itself says so. */
  role: 'person' | 'persona' | null;
  text: string;
}

export type HistoryItem =
  | HistoryMessage
  /** Something in it that is no message to be kept. */
  | { kind: 'left'; chat: string; why: string }
  /** A chat in the export; only where one of several has to be chosen. */
  | { kind: 'chat'; chat: string; id: string }
  /** How something ambiguous was understood. */
  | { kind: 'note'; text: string };

/** `zone`: of times without one. */
export type ReadHistory = (files: HistoryFile[], zone: Zone) => AsyncIterable<HistoryItem>;

export interface HistoryFormat {
  /** Part of the sentence that says what is known. */
  label: string;
  /** `head`: the beginning of its text. */
  isIn(head: string): boolean;
  read: ReadHistory;
}

export const LEFT = {
  media: 'media without words',
  system: 'lines of the program itself',
  empty: 'messages without words',
  broken: 'messages without a readable time',
  long: 'entries of more than 16 MB',
} as const;

/** The sentence is for the terminal. */
export function badFile(sentence: string, cause?: unknown): Fault {
  return new Fault('internal', sentence, cause);
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function textAt(record: Record<string, unknown>, key: string): string {
  const value = record[key];
  return typeof value === 'string' ? value : '';
}

/** Strings and numbers alike: exports of different years differ. */
export function idAt(record: Record<string, unknown>, key: string): string {
  const value = record[key];
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

/** Tells equal messages of one moment apart: without it, the second “ok” of a minute would be lost. */
export function occurrences(): (moment: string, message: string) => number {
  let current = '';
  let seen = new Map<string, number>();
  return (moment, message) => {
    if (moment !== current) seen = new Map();
    current = moment;
    const number = (seen.get(message) ?? 0) + 1;
    seen.set(message, number);
    return number;
  };
}

// ── Lines ──────────────────────────────────────────────────────────────────────────────────────────────────

/** Of a longer line the rest is dropped. */
const MOST_CHARS = 4_000_000;

/** Some lines at a time, because one await per line would take most of the time. */
export async function* linesIn(bytes: AsyncIterable<Buffer>): AsyncGenerator<string[]> {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  let isFirst = true;
  for await (const chunk of bytes) {
    let text = decoder.write(chunk);
    if (isFirst && text !== '') {
      if (text.startsWith('\ufeff')) text = text.slice(1);
      isFirst = false;
    }
    if (!text.includes('\n')) {
      if (rest.length < MOST_CHARS) rest += text;
      continue;
    }
    const lines = (rest + text).split(/\r?\n/);
    rest = lines.pop() ?? '';
    yield lines;
  }
  rest += decoder.end();
  if (rest !== '') yield [rest];
}

// ── Times ──────────────────────────────────────────────────────────────────────────────────────────────────

const HOUR_MS = 3_600_000;
const MOST_KNOWN = 10_000;

export interface Wall {
  year: number;
  month: number;
  day: number;
  hour: number;
  minute: number;
  second: number;
  ms?: number;
}

/** null: no such day or time. Where the clocks are set back, the later one. */
export function wallClock(zone: Zone): (wall: Wall) => number | null {
  /** By hour (UTC): the zone's formatter is slow. */
  const known = new Map<number, number>();
  const offsetAt = (at: number) => {
    const hour = Math.floor(at / HOUR_MS);
    const offset =
      known.get(hour) ?? Date.parse(`${zone.time(hour * HOUR_MS).replace(' ', 'T')}Z`) - hour * HOUR_MS;
    if (known.size >= MOST_KNOWN) known.clear();
    known.set(hour, offset);
    return offset;
  };
  return ({ year, month, day, hour, minute, second, ms = 0 }) => {
    const asUtc = Date.UTC(year, month - 1, day, hour, minute, second, ms);
    const back = new Date(asUtc);
    const isReal =
      back.getUTCFullYear() === year && back.getUTCMonth() === month - 1 && back.getUTCDate() === day;
    if (!isReal || hour > 23 || minute > 59 || second > 59) return null;
    return asUtc - offsetAt(asUtc - offsetAt(asUtc));
  };
}

// ── JSON ───────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Containers that `want` opens are walked, single values below them are kept whole and given to JSON.parse, all else is passed
 * over.
 */
type Want = 'open' | 'whole' | 'skip';

/** `path`: `$.chats.list.*.name`, with `*` for an element of an array. */
export type JsonPiece =
  | { kind: 'value'; path: string; value: unknown }
  | { kind: 'opened'; path: string }
  | { kind: 'too long'; path: string };

const MOST_BYTES = 16 * 1024 * 1024;
const MOST_KEY_BYTES = 4_096;
const MOST_DEPTH = 8;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const COMMA = 0x2c;
const COLON = 0x3a;
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];

/** Throws Fault for what is no JSON, or ends too early. `name` is shown. */
export async function* jsonPieces(
  name: string,
  bytes: AsyncIterable<Buffer>,
  want: (path: string) => Want,
): AsyncGenerator<JsonPiece> {
  const scanner = new Scanner(name, want);
  for await (const chunk of bytes) {
    scanner.write(chunk);
    yield* scanner.found.splice(0);
  }
  scanner.end();
  yield* scanner.found.splice(0);
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

class Scanner {
  readonly found: JsonPiece[] = [];
  private mode:
    | 'value'
    | 'first value'
    | 'key'
    | 'first key'
    | 'in key'
    | 'colon'
    | 'in value'
    | 'after'
    | 'end' = 'value';
  private readonly open: { isArray: boolean; path: string }[] = [];
  /** Of the value that comes. */
  private path = '$';
  private pieces: Buffer[] = [];
  private size = 0;
  private isKept = true;
  private depth = 0;
  private inString = false;
  private isEscaped = false;
  /** Bytes before this chunk. */
  private before = 0;

  constructor(
    private readonly name: string,
    private readonly want: (path: string) => Want,
  ) {}

  write(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length && chunk[at] === BYTE_ORDER_MARK[this.before + at]) at++;
    while (at < chunk.length) {
      if (this.mode === 'in value') at = this.throughValue(chunk, at);
      else if (this.mode === 'in key') at = this.throughKey(chunk, at);
      else if (isSpace(chunk[at] ?? 0)) at++;
      else at = this.step(chunk, at);
    }
    this.before += chunk.length;
  }

  end(): void {
    // A number or word at the root ends with the file.
    if (this.mode === 'in value' && this.open.length === 0 && this.depth === 0 && !this.inString)
      this.finish();
    if (this.mode !== 'end')
      throw badFile(`${this.name} ends in the middle: it is cut off. Export it again.`);
  }

  private step(chunk: Buffer, at: number): number {
    const byte = chunk[at] ?? 0;
    const inside = this.open.at(-1);
    switch (this.mode) {
      case 'first key':
      case 'key':
        if (byte === CLOSE_OBJECT && this.mode === 'first key') return this.close(at);
        if (byte !== QUOTE) throw this.noJson(at);
        this.mode = 'in key';
        return at + 1;
      case 'colon':
        if (byte !== COLON) throw this.noJson(at);
        this.mode = 'value';
        return at + 1;
      case 'first value':
      case 'value':
        if (byte === CLOSE_ARRAY && this.mode === 'first value') return this.close(at);
        return this.begin(byte, at);
      case 'after':
        if (byte === COMMA && inside) {
          this.mode = inside.isArray ? 'value' : 'key';
          this.path = `${inside.path}.*`;
          return at + 1;
        }
        if (inside && byte === (inside.isArray ? CLOSE_ARRAY : CLOSE_OBJECT)) return this.close(at);
        throw this.noJson(at);
      default:
        throw this.noJson(at);
    }
  }

  private begin(byte: number, at: number): number {
    const wanted = this.want(this.path);
    const isArray = byte === OPEN_ARRAY;
    if (wanted === 'open' && (isArray || byte === OPEN_OBJECT) && this.open.length < MOST_DEPTH) {
      this.found.push({ kind: 'opened', path: this.path });
      this.open.push({ isArray, path: this.path });
      this.mode = isArray ? 'first value' : 'first key';
      this.path = `${this.path}.*`;
      return at + 1;
    }
    this.isKept = wanted !== 'skip';
    this.mode = 'in value';
    return at;
  }

  private throughKey(chunk: Buffer, from: number): number {
    let at = from;
    for (; at < chunk.length; at++) {
      const byte = chunk[at];
      if (this.isEscaped) this.isEscaped = false;
      else if (byte === BACKSLASH) this.isEscaped = true;
      else if (byte === QUOTE) {
        this.keep(chunk.subarray(from, at), MOST_KEY_BYTES);
        if (this.size > MOST_KEY_BYTES) throw this.noJson(at);
        const key = this.parsed(`"${Buffer.concat(this.pieces).toString('utf8')}"`, at);
        this.forget();
        this.path = `${this.open.at(-1)?.path ?? '$'}.${String(key)}`;
        this.mode = 'colon';
        return at + 1;
      }
    }
    this.keep(chunk.subarray(from, at), MOST_KEY_BYTES);
    if (this.size > MOST_KEY_BYTES) throw this.noJson(at);
    return at;
  }

  /** To the value's end, or the chunk's. */
  private throughValue(chunk: Buffer, from: number): number {
    let { depth, inString, isEscaped } = this;
    let at = from;
    let isDone = false;
    for (; at < chunk.length && !isDone; at++) {
      const byte = chunk[at] ?? 0;
      if (inString) {
        if (isEscaped) isEscaped = false;
        else if (byte === BACKSLASH) isEscaped = true;
        else if (byte === QUOTE) {
          inString = false;
          isDone = depth === 0;
        }
      } else if (byte === QUOTE) inString = true;
      else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) depth++;
      else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
        // It closes what holds this number or word.
        if (depth === 0) break;
        depth--;
        isDone = depth === 0;
      } else if (depth === 0 && (byte === COMMA || isSpace(byte))) break;
    }
    const isWhole = isDone || at < chunk.length;
    Object.assign(this, { depth, inString, isEscaped });
    if (this.isKept) this.keep(chunk.subarray(from, at), MOST_BYTES);
    if (isWhole) this.finish();
    return at;
  }

  private keep(piece: Buffer, most: number): void {
    this.size += piece.length;
    if (this.size > most) this.pieces = [];
    else this.pieces.push(piece);
  }

  private forget(): void {
    this.pieces = [];
    this.size = 0;
  }

  private finish(): void {
    if (this.isKept) {
      const { path } = this;
      if (this.size > MOST_BYTES) this.found.push({ kind: 'too long', path });
      else {
        const value = this.parsed(Buffer.concat(this.pieces).toString('utf8'), 0);
        this.found.push({ kind: 'value', path, value });
      }
    }
    this.forget();
    this.depth = 0;
    this.mode = this.open.length === 0 ? 'end' : 'after';
  }

  private close(at: number): number {
    this.open.pop();
    this.mode = this.open.length === 0 ? 'end' : 'after';
    return at + 1;
  }

  private parsed(text: string, at: number): unknown {
    try {
      return JSON.parse(text);
    } catch {
      throw this.noJson(at);
    }
  }

  private noJson(at: number) {
    return badFile(
      `${this.name} is not JSON: it cannot be read at byte ${this.before + at}. Export it again.`,
    );
  }
}
