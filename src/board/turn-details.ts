/** A turn as the page shows it: what it recalled and was sent, its requests and calls, what it said. Pure. */
import type { OpenedTurn } from '../core/board.js';
import { cutAt, estimateTokens, printableLine } from '../core/cut.js';
import { callEntryId } from '../core/ids.js';
import type { MattTurn, RecordedEnd, RecordedMessage, RecordedRequest } from '../core/journal.js';
import type { LoreSeen } from '../core/lorebook.js';
import { wordsBy } from '../core/transcript.js';
import type { TurnDetails, TurnLore } from './protocol.js';

export function turnDetails(
  { turn, entries, records }: OpenedTurn,
  nameOf: (personaId: string) => string,
): TurnDetails {
  const [first] = records;
  const [asked] = first?.requests ?? [];
  return {
    id: turn.id,
    room: turn.room,
    personaId: turn.personaId,
    state: turn.state,
    startedAt: turn.startedAt,
    finishedAt: turn.finishedAt,
    recalled: (first?.sight?.recalled ?? []).map(recalledIn),
    lore: first?.sight?.lore ? loreIn(first.sight.lore) : null,
    prompt: asked ? promptParts(asked) : [],
    messages: turn.batch.map((message) => ({
      author: wordsBy(message, nameOf),
      at: message.sentAt,
      text: message.text,
    })),
    requests: records.flatMap((record) => record.requests.map(requestIn)),
    calls: callsOf(turn, entries),
    sends: turn.sends.map(({ text, file, reaction, state, createdAt, finishedAt, error }) => ({
      text: [text, file, reaction].filter((part) => part !== null && part !== '').join('\n'),
      state,
      at: finishedAt ?? createdAt,
      error,
    })),
  };
}

/** `- 2026-11-22 08:15, Ann: words`, or `- words (MEMORY.md, tier 1)`. */
const SAID = /^- (\d{4}-\d\d-\d\d \d\d:\d\d, [^:\n]+): (.*)$/;
const WRITTEN = /^- (.*) \(([^()\n]+)\)$/;

/** A line of another form is shown whole. */
function recalledIn(line: string): TurnDetails['recalled'][number] {
  const [, said, words] = SAID.exec(line) ?? [];
  if (said !== undefined && words !== undefined) return { text: words, source: said };
  const [, written, file] = WRITTEN.exec(line) ?? [];
  if (written !== undefined && file !== undefined) return { text: written, source: file };
  return { text: line, source: '' };
}

/** Of those that stood in it, and of those that did not fit. */
const MOST_ENTRIES = 200;
const NAME_CHARS = 120;

/** Names and keys are words of strangers, of any length. */
function loreIn({ entries, more, givenUp }: LoreSeen): TurnLore {
  const named = (text: string) =>
    printableLine(text.length > NAME_CHARS ? `${cutAt(text, NAME_CHARS)}…` : text);
  const told = [true, false].flatMap((kept) =>
    entries.filter((entry) => entry.kept === kept).slice(0, MOST_ENTRIES),
  );
  return {
    entries: told.map(({ name, book, key, from, kept }) => ({
      ...{ name: named(name), book: named(book), kept },
      key: key === null ? null : named(key),
      from: from === undefined ? null : named(from),
    })),
    more: more + entries.length - told.length,
    givenUp: givenUp.map(named),
  };
}

function requestIn({ at, ms, model, end }: RecordedRequest): TurnDetails['requests'][number] {
  const isFailed = end.kind === 'failed';
  const name = isFailed ? (model ?? '') : end.model;
  return { at, ms, model: name, ...usedBy(end), error: isFailed ? end.why : null };
}

const MILLION = 1_000_000;

/** Of both requests, where a second one completed the answer. */
function usedBy(end: RecordedEnd) {
  const usages = end.kind === 'failed' ? [] : [end.usage, end.further].filter((usage) => usage != null);
  const sumOf = (numbers: (number | undefined)[]) =>
    numbers.length === 0 || numbers.every((each) => each === undefined)
      ? null
      : numbers.reduce<number>((sum, each) => sum + (each ?? 0), 0);
  const prices = end.kind === 'failed' ? undefined : end.prices;
  const cost = prices
    ? sumOf(usages.map((usage) => usage.inputTokens * prices.input + usage.outputTokens * prices.output))
    : null;
  return {
    inputTokens: sumOf(usages.map(({ inputTokens }) => inputTokens)),
    outputTokens: sumOf(usages.map(({ outputTokens }) => outputTokens)),
    cachedTokens: sumOf(usages.map(({ cachedTokens }) => cachedTokens)),
    cost: cost === null ? null : cost / MILLION,
  };
}

function callsOf(turn: OpenedTurn['turn'], entries: OpenedTurn['entries']): TurnDetails['calls'] {
  const results = new Map(
    turn.steps.flatMap((step) => (step.kind === 'result' ? [[step.callId, step] as const] : [])),
  );
  const journalled = new Map(
    entries.flatMap((entry): [string, MattTurn][] => (entry.type === 'MattTurn' ? [[entry.id, entry]] : [])),
  );
  return turn.steps
    .flatMap((step) => (step.kind === 'answer' ? step.calls : []))
    .map((call) => {
      const result = results.get(call.id);
      const entry = journalled.get(callEntryId(turn.id, call.id));
      const from = entry ? Date.parse(entry.timestamp_intent) : Number.NaN;
      const to = entry?.timestamp_outcome ? Date.parse(entry.timestamp_outcome) : Number.NaN;
      return {
        id: call.id,
        tool: call.name,
        arguments: call.arguments,
        result: result?.content ?? null,
        failed: result?.failed ?? false,
        at: Number.isNaN(from) ? null : from,
        ms: Number.isNaN(to - from) ? null : Math.max(0, to - from),
      };
    });
}

// ── The prompt ──────────────────────────────────────────────────────────────────────────────────────────────

// By the marks that the gateway itself puts between its parts. Words of others stand in fences and elements that they
// cannot leave, so no text can pose as another part; and none is left out: what has no mark stays in the part before it.

type PromptPart = TurnDetails['prompt'][number];

/** In the order of the request; names in this list are known to the page, others are headings as they stand. */
function promptParts({ messages, tools }: RecordedRequest): PromptPart[] {
  const [first, ...rest] = messages;
  const system = first?.role === 'system' ? systemParts(first.content) : [];
  const spoken = first?.role === 'system' ? rest : messages;
  const last = spoken.at(-1);
  const parts: [name: string, text: string][] = [
    ...system,
    ['tools', tools.map((tool) => JSON.stringify(tool, null, 2)).join('\n\n')],
    ...spokenParts(spoken.slice(0, -1)),
    ...(last ? elementParts(last) : []),
  ];
  return parts
    .filter(([, text]) => text.trim() !== '')
    .map(([name, text]) => ({ name, text: text.trim(), tokens: estimateTokens(text) }));
}

// ── The system prompt ───────────────────────────────────────────────────────────────────────────────────────

const HEADINGS: Record<string, string> = {
  'Principles (highest priority)': 'principles',
  'Memory (this persona)': 'memory',
  Workspace: 'workspace',
  Plan: 'plan',
  Clipboard: 'clipboard',
  Skills: 'skills',
};
const DAILY_LOG = 'The recent daily log of this chat:';
const PERSONA = 'Who you are:';

/** A heading counts outside of fences only. */
function systemParts(prompt: string): [string, string][] {
  const parts: [name: string, lines: string[]][] = [['instructions', []]];
  const begin = (name: string) => parts.push([name, []]);
  let fence: string | null = null;
  for (const line of prompt.split('\n')) {
    const name = parts.at(-1)?.[0];
    const heading = fence === null ? /^# (.+)$/.exec(line)?.[1] : undefined;
    if (heading !== undefined) begin(HEADINGS[heading] ?? heading);
    else if (fence === null && line === PERSONA && name === 'instructions') begin('persona');
    else if (fence === null && line === DAILY_LOG && name === 'memory') begin('daily log');
    parts.at(-1)?.[1].push(line);
    if (fence === null) fence = /^(`{3,})text$/.exec(line)?.[1] ?? null;
    else if (line === fence) {
      fence = null;
      if (name === 'persona') begin('instructions');
    }
  }
  return parts.map(([name, lines]) => [name, lines.join('\n')]);
}

// ── The messages ────────────────────────────────────────────────────────────────────────────────────────────

/** A line in brackets may introduce an element. */
const ELEMENT = /(?:^\([^\n]*\)\n)?<(summary|memory_now|recalled|lore)\b[^>\n]*>\n[\s\S]*?\n<\/\1>\n?/gm;
const NAMES: Record<string, string> = { memory_now: 'memory now' };

/** The summary stands in the first of the older messages. */
function spokenParts(messages: readonly RecordedMessage[]): [string, string][] {
  const [first, ...rest] = messages;
  if (first === undefined) return [];
  const inFirst = elementParts(first);
  const own = inFirst.filter(([name]) => name === 'summary');
  const words = inFirst.filter(([name]) => name !== 'summary').map(([, text]) => text);
  const all = [
    `${roleOf(first)}\n${words.join('\n')}`,
    ...rest.map((each) => `${roleOf(each)}\n${wordsOf(each)}`),
  ];
  const isOnlySummary = words.join('').trim() === '' && rest.length === 0;
  return [...own, ['conversation', isOnlySummary ? '' : all.join('\n\n')]];
}

/** The elements of a message, then the rest of it. */
function elementParts(message: RecordedMessage): [string, string][] {
  const words = wordsOf(message);
  if (message.role !== 'user') return [['message', `${roleOf(message)}\n${words}`]];
  const elements = [...words.matchAll(ELEMENT)].map(([whole, name = '']): [string, string] => [
    NAMES[name] ?? name,
    whole,
  ]);
  return [...elements, ['message', words.replaceAll(ELEMENT, '')]];
}

function roleOf(message: RecordedMessage): string {
  return message.role === 'tool' ? `── tool, result of ${message.callId}` : `── ${message.role}`;
}

function wordsOf(message: RecordedMessage): string {
  const calls = message.role === 'assistant' ? message.calls : [];
  const images = message.role === 'user' ? (message.images ?? []) : [];
  return [
    ...(message.content === '' ? [] : [message.content]),
    ...images.map(({ mimeType, bytes }) => `(a picture, ${mimeType}, ${bytes} bytes)`),
    ...calls.map(({ id, name, arguments: given }) => `calls ${name} (${id}) ${given}`),
  ].join('\n');
}
