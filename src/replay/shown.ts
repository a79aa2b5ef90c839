/** The output of `coterie replay`: a turn as text for a terminal, from the store and its records. Pure. */

import { printable, printableLine } from '../core/cut.js';
import type { Zone } from '../core/dates.js';
import { callEntryId } from '../core/ids.js';
import type {
  JournalEntry,
  MattTurn,
  RecordedEnd,
  RecordedMessage,
  RecordedRequest,
  SentByTurn,
  TurnInStore,
  TurnRecord,
} from '../core/journal.js';
import type { Usage } from '../core/model.js';
import { type StoredMessage, wordsBy } from '../core/transcript.js';
import { type AskedAgain, comparable, diffOf, shownDiff } from './again.js';

export interface ShownTurn {
  turn: TurnInStore;
  entries: readonly JournalEntry[];
  records: readonly TurnRecord[];
  /** Number of unreadable record files. */
  torn: number;
}

export function shownTurn(told: ShownTurn, zone: Zone): string {
  const { turn, entries, records } = told;
  const requests = records.flatMap((record) => record.requests);
  return sections([
    headOf(turn, zone),
    section(
      'Messages it answered',
      turn.batch.map((message) => shownMessage(message, zone)),
      GONE,
    ),
    ...records.flatMap((record) => sightLines(record)),
    ...(requests.length === 0 ? [noRecord(told)] : shownRequests(requests, zone)),
    callsSection(told, zone),
    section('What it said', turn.reply === null ? [] : [printable(turn.reply.text)], 'Nothing.'),
    section(
      'Sends',
      turn.sends.map((sent) => shownSend(sent, zone)),
      'None.',
    ),
    section(
      'Journal',
      entries.map((entry) => shownEntry(entry)),
      'No entries.',
    ),
  ]);
}

/** Entries of no turn, such as those of a memory flush. */
export function shownEntries(entries: readonly JournalEntry[]): string {
  const title =
    'This is of no turn that answered somebody (a memory flush, say): only the journal tells of it.';
  return sections([title, section('Journal', entries.map(shownEntry), 'No entries.')]);
}

export function shownAgain(requests: readonly RecordedRequest[], again: readonly AskedAgain[]): string {
  const parts = again.map(({ end, ms }, n) => {
    const before = requests[n]?.end;
    const lines = before ? shownDiff(diffOf(comparable(before), comparable(end))) : [];
    const whole = lines.length === 0 ? ['The same as then.'] : lines.map(printableLine);
    return section(`Request ${n + 1} again, ${seconds(ms)}, ${answeredBy(end)}`, [whole.join('\n')], '');
  });
  const used = again.flatMap(({ end, prices }) => {
    const usages = end.kind === 'failed' ? [] : [end.usage, end.further];
    return usages.flatMap((usage) => (usage ? [{ ...usage, prices }] : []));
  });
  const input = used.reduce((sum, { inputTokens }) => sum + inputTokens, 0);
  const output = used.reduce((sum, { outputTokens }) => sum + outputTokens, 0);
  const cost = used.reduce(
    (sum, { inputTokens, outputTokens, prices }) =>
      sum + (prices ? (inputTokens * prices.input + outputTokens * prices.output) / 1_000_000 : 0),
    0,
  );
  const price = used.some(({ prices }) => prices) ? `, which cost about ${cost.toFixed(4)}` : '';
  const pictures = requests.some(({ messages }) =>
    messages.some((each) => each.role === 'user' && each.images),
  );
  return sections([
    'Asked again. Lines with - are of then, lines with + of now. Nothing was done, sent or stored.',
    ...parts,
    `This took ${input} tokens in and ${output} out${price}; it does not count towards any limit.`,
    ...(pictures ? ['Pictures are not recorded: the model was asked without them.'] : []),
  ]);
}

const GONE = 'They are not stored any more.';

function headOf(turn: TurnInStore, zone: Zone): string {
  const { id, personaId, room, state, startedAt, finishedAt, attempts, crashes, waitsFor, waitsUntil } = turn;
  const took = finishedAt === null ? '' : `, took ${seconds(finishedAt - startedAt)}`;
  const until = waitsUntil === null ? '' : `, until ${timeOf(waitsUntil, zone)} at the latest`;
  const lines = [
    `Turn ${id}: ${state}`,
    `Persona ${personaId} in ${room}`,
    `Began ${timeOf(startedAt, zone)} (${zone.name})${took}`,
    ...(attempts > 0 || crashes > 0 ? [`Faults of our own: ${attempts}; crashes during it: ${crashes}`] : []),
    ...(waitsFor === null ? [] : [`Waits for ${waitsFor}${until}`]),
  ];
  return lines.map(printableLine).join('\n');
}

function shownMessage(message: StoredMessage, zone: Zone): string {
  const { id, sentAt, author, text } = message;
  const who = author.kind === 'person' ? ` (${author.id})` : '';
  const words = text === '' ? '(its text is gone)' : printable(text);
  return `[${id}] ${timeOf(sentAt, zone)} ${printableLine(wordsBy(message))}${who}:\n${indented(words)}`;
}

function sightLines({ sight }: TurnRecord): string[] {
  if (sight === null) return [];
  const { windowAfter, messages, estimatedTokens, summary, recalled, lore } = sight;
  const from = windowAfter.messageId === 0 ? 'from the beginning' : `behind message ${windowAfter.messageId}`;
  const lines = [
    `The window: ${messages} messages, ${from}; by our estimate ${estimatedTokens} tokens.`,
    summary === null ? 'No summary.' : `The summary of what was before:\n${indented(printable(summary))}`,
    recalled.length === 0
      ? 'No recalled lines.'
      : `Recalled lines:\n${recalled.map((line) => indented(printable(line))).join('\n')}`,
  ];
  for (const { name, book, key, kept } of lore?.entries ?? []) {
    const why = key === null ? 'always there' : `by ${key}`;
    lines.push(printableLine(`Lore: ${name}, of ${book}, ${why}${kept ? '' : '; it did not fit'}.`));
  }
  return [section('What it saw', lines, '')];
}

function noRecord({ torn, turn }: ShownTurn): string {
  const broken = torn === 0 ? '' : ` (${torn} files of records could not be read to their end)`;
  const why =
    turn.state === 'aborted' || turn.state === 'running'
      ? 'Of a turn that was stopped or still runs there is none.'
      : 'It is too old, the process ended before it was written, or recording is off (retention.replay_bytes: 0).';
  return section('Requests', [`There is no record of what the model was sent${broken}. ${why}`], '');
}

function shownRequests(requests: readonly RecordedRequest[], zone: Zone): string[] {
  let before: RecordedMessage[] = [];
  return requests.map((request, n) => {
    const { messages, at, ms, end } = request;
    const same = alike(before, messages);
    before = messages;
    const known = same === 0 ? [] : [`(the ${same} messages of the request before, and:)`];
    const title = `Request ${n + 1} of ${requests.length}, ${timeOf(at, zone)}, ${seconds(ms)}`;
    const parts = [settingsOf(request), ...known, ...messages.slice(same).map(shownPrompt), shownEnd(end)];
    return section(title, parts, '');
  });
}

function alike(one: RecordedMessage[], other: RecordedMessage[]): number {
  const differs = other.findIndex((message, n) => JSON.stringify(message) !== JSON.stringify(one[n]));
  return differs < 0 ? other.length : differs;
}

function settingsOf({ model, temperature, maxOutputTokens, mayCall, tools }: RecordedRequest): string {
  const parts = [
    `model: ${model ?? 'as configured'}`,
    ...(temperature === undefined ? [] : [`temperature: ${temperature}`]),
    ...(maxOutputTokens === undefined ? [] : [`at most ${maxOutputTokens} tokens`]),
    ...(mayCall === false ? ['may not call tools'] : []),
    tools.length === 0 ? 'no tools' : `tools: ${tools.map(({ name }) => name).join(', ')}`,
  ];
  return printableLine(parts.join('; '));
}

function shownPrompt(message: RecordedMessage): string {
  const { role, content } = message;
  const whose = role === 'tool' ? `tool, result of ${message.callId}` : role;
  const calls = role === 'assistant' ? message.calls.map((call) => shownCall(call)) : [];
  const images = role === 'user' ? (message.images ?? []) : [];
  const pictures = images.map(({ mimeType, bytes }) => `(a picture, ${mimeType}, ${bytes} bytes)`);
  const body = [...(content === '' ? [] : [printable(content)]), ...pictures, ...calls];
  return `--- ${printableLine(whose)}\n${body.join('\n')}`;
}

function shownCall({ id, name, arguments: given }: { id: string; name: string; arguments: string }): string {
  return printableLine(`calls ${name} (${id}) ${given}`);
}

function shownEnd(end: RecordedEnd): string {
  const title = `=== ${answeredBy(end)}`;
  if (end.kind === 'failed') return title;
  const calls = end.calls.map(({ name, arguments: given }) => printableLine(`calls ${name} ${given}`));
  const marks = [
    ...(end.truncated ? ['(it ends at a limit)'] : []),
    ...(end.cut ? ['(the server read only a part of the request)'] : []),
  ];
  return [title, ...(end.text === '' ? [] : [printable(end.text)]), ...calls, ...marks].join('\n');
}

function answeredBy(end: RecordedEnd): string {
  if (end.kind === 'failed') return printableLine(`failed (${end.code}): ${end.why}`);
  const used = [end.usage, end.further].flatMap((usage) => (usage ? [tokensIn(usage)] : []));
  return printableLine(`answer of ${end.model}, ${used.join('; then ') || 'tokens not counted'}`);
}

function tokensIn({ inputTokens, outputTokens, cachedTokens }: Usage): string {
  const cached = cachedTokens === undefined ? '' : ` (${cachedTokens} from its cache)`;
  return `${inputTokens} tokens in${cached}, ${outputTokens} out`;
}

function callsSection({ turn, entries }: ShownTurn, zone: Zone): string {
  const results = new Map(
    turn.steps.flatMap((step) => (step.kind === 'result' ? [[step.callId, step] as const] : [])),
  );
  const calls = turn.steps.flatMap((step) => (step.kind === 'answer' ? step.calls : []));
  const lines = calls.map((call) => {
    const entry = entries.find(
      (each): each is MattTurn => each.type === 'MattTurn' && each.id === callEntryId(turn.id, call.id),
    );
    const result = results.get(call.id);
    const approved = turn.steps.find((step) => step.kind === 'approved' && step.callId === call.id);
    const by = approved?.kind === 'approved' ? `, allowed by ${approved.by}` : '';
    const waits = turn.steps.some((step) => step.kind === 'waiting' && step.callId === call.id);
    const state = result ? (result.failed ? 'failed' : 'done') : waits ? 'waits' : 'no outcome';
    const content = result ? `\n${indented(printable(result.content))}` : '';
    return `${shownCall(call)}\n  ${printableLine(state + by)}${timesOf(entry, zone)}${content}`;
  });
  return section('Calls and their results', lines, 'None.');
}

function timesOf(entry: MattTurn | undefined, zone: Zone): string {
  if (entry === undefined) return '';
  const { timestamp_intent: from, timestamp_outcome: to } = entry;
  const until = to === undefined ? '' : ` to ${timeOf(Date.parse(to), zone).slice(11)}`;
  return `, ${timeOf(Date.parse(from), zone)}${until}`;
}

function shownSend(sent: SentByTurn, zone: Zone): string {
  const { by, part, chatId, state, finishedAt, attempts, platformMessageId, error } = sent;
  const what = by === 'answer' ? `the answer, part ${part + 1}` : `beside the answer, part ${part + 1}`;
  const at = finishedAt === null ? '' : ` ${timeOf(finishedAt, zone)}`;
  const id = platformMessageId ? ` as ${platformMessageId}` : '';
  const why = error === null ? '' : `: ${error}`;
  const extra = [
    ...(sent.file === null ? [] : [`file ${sent.file}`]),
    ...(sent.reaction === null ? [] : [`reaction ${sent.reaction}`]),
  ];
  const head = `${what}, to ${chatId}: ${state}${at}${id}, ${attempts} ${attempts === 1 ? 'try' : 'tries'}${why}`;
  const body = [...extra.map(printableLine), ...(sent.text === '' ? [] : [printable(sent.text)])];
  return [printableLine(head), ...body.map(indented)].join('\n');
}

function shownEntry(entry: JournalEntry): string {
  if (entry.type === 'GUPPIEvent') {
    return printableLine(`${entry.timestamp_event} ${entry.id} ${entry.event_type} from ${entry.source}`);
  }
  return printableLine(`${entry.timestamp_intent} ${entry.id} ${entry.action.tool}: ${entry.status}`);
}

function timeOf(at: number, zone: Zone): string {
  if (!Number.isFinite(at)) return 'at no time';
  // Every zone's offset is in whole minutes.
  return `${zone.time(at)}:${new Date(at).toISOString().slice(17, 19)}`;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

function section(title: string, parts: readonly string[], ifNone: string): string {
  const body = parts.length === 0 ? [ifNone] : parts;
  return `## ${title}\n\n${body.join('\n\n')}`;
}

function sections(parts: readonly string[]): string {
  return `${parts.join('\n\n')}\n`;
}

function indented(text: string): string {
  return text
    .split('\n')
    .map((line) => (line === '' ? '' : `  ${line}`))
    .join('\n');
}

export interface Redacting {
  /** Redacts secrets in a text. */
  clean(text: string): string;
  /** A call's arguments as the journal shows them; `name`: '' if unknown. */
  argumentsOf(name: string, given: string): string;
}

/** A copy with all strings redacted; arguments of calls first. */
export function redacted<Value>(value: Value, by: Redacting): Value {
  return cleaned(value, by) as Value;
}

function cleaned(value: unknown, by: Redacting): unknown {
  if (typeof value === 'string') return by.clean(value);
  if (typeof value !== 'object' || value === null || Buffer.isBuffer(value)) return value;
  if (Array.isArray(value)) return value.map((each) => cleaned(each, by));
  const { name } = value as { name?: unknown };
  const entries = Object.entries(value).map(([key, inner]) => {
    const isArguments = key === 'arguments' && typeof inner === 'string';
    const shown = isArguments ? by.argumentsOf(typeof name === 'string' ? name : '', inner) : inner;
    return [by.clean(key), cleaned(shown, by)];
  });
  return Object.fromEntries(entries);
}
