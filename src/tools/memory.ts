/** The memory tools. A tier of MEMORY.md is read before it is replaced. */
import * as z from 'zod';
import { isOwnersOrder } from '../core/authorisation.js';
import { cutAt } from '../core/cut.js';
import { entryLine, isDate } from '../core/daily-log.js';
import { localMidnight, type Zone } from '../core/dates.js';
import { seenKey } from '../core/ids.js';
import { changedLines, type Memory, type MemoryDraft, type Tier, type Tier1By } from '../core/memory.js';
import { type Origin, originOf, unescaped, writtenBack } from '../core/origin.js';
import { isFromOutside, type Recall, type Recalled, recalledLine, WORKSPACE } from '../core/recall.js';
import type { AnyTool, ToolContext, ToolResult } from '../core/tool.js';
import { type Allowed, defineTool, originThere, type ToolTarget, tier1Refusal } from './authorise.js';
import {
  dayIn,
  done,
  doneFrom,
  failed,
  fits,
  inDigits,
  NO_DAY,
  refuseSecret,
  shown,
  unsaved,
} from './results.js';

export function memoryTools(memory: Memory, tier1By: Tier1By): AnyTool[] {
  return [...draftTools(memory, tier1By), writeMemory(memory)];
}

/** For a draft of the tiers: the daily log is read-only. */
export function draftTools(draft: MemoryDraft, tier1By: Tier1By): AnyTool[] {
  return [readTieredMemory(draft), writeTieredMemory(draft, tier1By), readMemory(draft)];
}

const TIERS: readonly Tier[] = [1, 2, 3];
/** Maximum number of removed lines reported after a write. */
const MOST_LINES = 20;
const LINE_CHARS = 160;
/** Tomorrow may already have begun in people's time zone; ten years reach beyond any late flush. */
const MOST_DAYS_AHEAD = 1;
const MOST_DAYS_BACK = 3_660;
const DAY_MS = 86_400_000;

const chat_id = z.string().optional();
const persona_id = z.string().optional();
const date = z.string().optional().describe('YYYY-MM-DD. Left out: today.');
// Models also write the number as text.
const tierNumber = z.coerce.number().pipe(z.literal([1, 2, 3]));

const READ_ONLY =
  'Principles are read-only: only the operator edits them. Your own memory is written with write_tiered_memory.';
const ONLY_DAILY =
  'write_memory takes only the scope chat_daily. Tiers are written with write_tiered_memory.';

export function readTieredMemory(memory: MemoryDraft): AnyTool {
  return defineTool({
    name: 'read_tiered_memory',
    description: 'Reads a tier of your memory (MEMORY.md), whole, as it stands now.',
    hint: 'read a tier of your memory, whole',
    parameters: z.object({
      tier: tierNumber.optional().describe('1, 2 or 3. Left out: all three.'),
      chat_id,
      persona_id,
    }),
    risk: 'low',
    forAgents: true,
    usesFiles: true,
    async execute({ tier: only }, context, allowed) {
      const texts: string[] = [];
      for (const tier of only === undefined ? TIERS : [only]) {
        const text = await memory.readTier(allowed.target, tier);
        noteSeen(allowed.target, tier, text, context);
        const whole = text === '' ? `(Tier ${tier} is empty.)` : shown(text);
        texts.push(only === undefined ? `Tier ${tier}:\n${whole}` : whole);
      }
      return doneFrom(await originOfTiers(memory, allowed), texts.join('\n\n'));
    },
  });
}

function writeTieredMemory(memory: MemoryDraft, tier1By: Tier1By): AnyTool {
  return defineTool({
    name: 'write_tiered_memory',
    description: 'Replaces one tier of your memory (MEMORY.md): include what should stay.',
    hint: 'write a tier anew',
    parameters: z.object({
      tier: tierNumber.describe('1 long term, 2 mid term, 3 short term.'),
      content: z
        .string()
        .describe('The whole new text of the tier, Markdown. It replaces the old text; empty clears it.'),
      chat_id,
      persona_id,
    }),
    risk: 'medium',
    usesFiles: true,
    async execute({ tier, content: given }, context, allowed) {
      const forbidden = tier === 1 ? await tier1Refusal(allowed.caller, tier1By) : null;
      if (forbidden !== null) return failed(forbidden);
      const { chatId, personaId } = allowed.target;
      const seen = context.seen.get(seenKey(chatId, personaId, tier));
      const before = seen !== undefined && 'text' in seen ? seen.text : '';
      const content = writtenBack(given, before);
      const bytes = Buffer.byteLength(content);
      const most = memory.budgets.tierBytes;
      if (bytes > most) {
        return failed(
          `Tier ${tier} was not written: the content has ${inDigits(bytes)} bytes, and a tier may hold ${inDigits(most)}. Shorten it and write it again.`,
        );
      }
      const refusal = await refuseSecret('write_tiered_memory', content, before, context);
      if (refusal !== null) return refusal;
      if (context.signal.aborted) return unsaved('Stopped: nothing was written.');
      const outcome = await memory.writeTier(allowed.target, tier, content, seen, context);
      if (outcome.kind === 'refused') return failed(`Tier ${tier} was not written. ${outcome.reason}`);
      const now = outcome.kind === 'written' ? outcome.text : outcome.current;
      noteSeen(allowed.target, tier, now, context);
      const nowShown = now === '' ? 'It is empty now.' : `It now says:\n\n${shown(now)}`;
      if (outcome.kind === 'changed') {
        const refused = unsaved(
          `Tier ${tier} was not written, because you had not seen the whole of it as it is now. ` +
            `${nowShown}\n\nMerge your change into that and write it again.`,
        );
        return { ...doneFrom(await originOfTiers(memory, allowed), ''), ...refused };
      }
      const written =
        now === before
          ? `Tier ${tier} said just that already; nothing was changed.`
          : `Tier ${tier} is written.`;
      return done(`${written} ${nowShown}${removedLines(before, now)}`);
    },
  });
}

function readMemory(memory: MemoryDraft): AnyTool {
  return defineTool({
    name: 'read_memory',
    description: 'Reads the principles, your whole memory file, or one day of the daily log.',
    hint: 'read the principles, your whole memory file, or a day of the daily log',
    parameters: z.object({
      scope: z
        .enum(['global', 'chat', 'chat_daily'])
        .describe(
          'global: the principles. chat: your whole MEMORY.md. chat_daily: the daily log of the chat.',
        ),
      date,
      chat_id,
      persona_id,
    }),
    risk: 'low',
    usesFiles: true,
    async execute({ scope, date: given }, context, allowed) {
      if (scope === 'global') return done(shown(await memory.principles()) || '(There are no principles.)');
      if (scope === 'chat') return readWhole(memory, allowed, context);
      const day = given || dayIn(context.timezone, context.now);
      if (!isDate(day)) return failed(NO_DAY);
      const { chatId } = allowed.target;
      const text = await memory.readDaily(chatId, day);
      const origin = originOf([
        { origin: originThere(allowed) },
        { origin: await memory.originOfDay(chatId, day) },
      ]);
      return doneFrom(origin, shown(text) || `(Nothing is in the daily log of ${day}.)`);
    },
  });
}

/** A turn that was shown the whole file has seen its tiers and may replace them. */
async function readWhole(memory: MemoryDraft, allowed: Allowed, context: ToolContext): Promise<ToolResult> {
  const { target } = allowed;
  // Read before the shown text: after a write in between, a tier counts as seen in its older form, and a
  // write based on that is refused.
  const tiers = await Promise.all(TIERS.map((tier) => memory.readTier(target, tier)));
  const text = await memory.readAll(target);
  if (fits(text)) {
    for (const [n, tier] of TIERS.entries()) noteSeen(target, tier, tiers[n] ?? '', context);
  }
  return doneFrom(await originOfTiers(memory, allowed), shown(text) || '(This memory is empty.)');
}

function writeMemory(memory: Memory): AnyTool {
  return defineTool({
    name: 'write_memory',
    description: 'Adds a line to the daily log of the chat.',
    hint: 'add a line to the daily log of this chat (scope chat_daily)',
    parameters: z.object({
      // Not an enum, so that a model that tries another scope is told why it cannot.
      scope: z.string().meta({ enum: ['chat_daily'] }),
      content: z.string().describe('One short line: an outcome, a decision, a reference. No transcripts.'),
      date,
      chat_id,
    }),
    risk: 'medium',
    usesFiles: true,
    async execute(given, context, { target: { chatId } }) {
      const noted = await lineOf(given, context, {
        readOnly: READ_ONLY,
        onlyDaily: ONLY_DAILY,
        daysAhead: MOST_DAYS_AHEAD,
        elsewhere: 'a tier',
        mostChars: memory.budgets.dailyPerDayMaxChars,
      });
      if ('content' in noted) return noted;
      const { day, line } = noted;
      const outcome = await memory.appendDaily(chatId, day, line, context);
      return done(
        outcome === 'added'
          ? `Added to the daily log of ${day}: ${shown(line)}`
          : `This very line stands in the daily log of ${day} already; nothing was added.`,
      );
    },
  });
}

/** The line of a `write_memory` for a day, or why it is not written. */
export async function lineOf(
  { scope, content, date }: { scope: string; content: string; date?: string | undefined },
  context: ToolContext,
  rules: { readOnly: string; onlyDaily: string; daysAhead: number; elsewhere: string; mostChars: number },
): Promise<{ day: string; line: string } | ToolResult> {
  if (scope === 'global') return failed(rules.readOnly);
  if (scope !== 'chat_daily') return failed(rules.onlyDaily);
  const today = dayIn(context.timezone, context.now);
  const day = date || today;
  const misplaced = isDate(day) ? whyNotOn(day, today, rules) : NO_DAY;
  if (misplaced !== null) return failed(misplaced);
  const line = entryLine(unescaped(content));
  if (line === '') return failed('There is no content to add; nothing was written.');
  if (line.length > rules.mostChars) {
    const [has, most] = [line.length, rules.mostChars].map(inDigits);
    return failed(
      `Nothing was added: the line has ${has} characters, and one of the daily log may have ${most}. Shorten it.`,
    );
  }
  const refusal = await refuseSecret('write_memory', content, '', context);
  if (refusal !== null) return refusal;
  return context.signal.aborted ? unsaved('Stopped: nothing was written.') : { day, line };
}

/** The daily log records a day's events in the chat: why this day cannot be one, or null. */
function whyNotOn(
  day: string,
  today: string,
  { daysAhead, elsewhere }: { daysAhead: number; elsewhere: string },
): string | null {
  const ahead = Math.round((Date.parse(day) - Date.parse(today)) / DAY_MS);
  if (ahead > daysAhead) {
    return `Nothing was written: ${day} is still to come (today is ${today}), and the daily log says what has happened. What is planned belongs into ${elsewhere}, with its date.`;
  }
  if (ahead < -MOST_DAYS_BACK) {
    return `Nothing was written: ${day} is more than ten years ago (today is ${today}), and the daily log says what happened in this chat. What was long ago belongs into ${elsewhere}, with its date.`;
  }
  return null;
}

/** The whole file's origin, whichever tier is read. */
async function originOfTiers(memory: MemoryDraft, allowed: Allowed): Promise<Origin> {
  return originOf([{ origin: originThere(allowed) }, { origin: await memory.originOf(allowed.target) }]);
}

/** A model that rewrites a whole tier may drop lines unintentionally. */
function removedLines(before: string, after: string): string {
  const { went } = changedLines(before, after);
  if (went.length === 0) return '';
  const listed = went.slice(0, MOST_LINES).map((line) => {
    const short = line.length <= LINE_CHARS ? line : `${cutAt(line, LINE_CHARS)} …`;
    return short.startsWith('- ') ? short : `- ${short}`;
  });
  if (went.length > MOST_LINES) listed.push(`- and ${went.length - MOST_LINES} more`);
  return `\n\nIt no longer holds:\n${listed.join('\n')}`;
}

/** Allows the model to replace the tier as shown. */
function noteSeen(target: ToolTarget, tier: Tier, text: string, context: ToolContext): void {
  context.seen.set(seenKey(target.chatId, target.personaId, tier), fits(text) ? { text } : { cut: true });
}

const DEFAULT_HITS = 10;
const MOST_HITS = 50;

/** Searches the caller's own chat and persona; for an owner in a control chat, also workspace notes. */
export function searchMemory(recall: Recall, zone: Zone): AnyTool {
  return defineTool({
    name: 'search_memory',
    description:
      'Searches your memory, the daily log and everything that was said to you or in your presence in this chat, ' +
      'however long ago. Use it before you say that you do not know or do not remember.',
    hint: 'search what was said and noted in this chat, however long ago',
    parameters: z.object({
      query: z
        .string()
        .describe('What you look for, in plain words: names, things, what was asked or promised.'),
      limit: z.coerce.number().int().min(1).max(MOST_HITS).optional().describe(`Left out: ${DEFAULT_HITS}.`),
      since: z.string().optional().describe('YYYY-MM-DD: only from this day on.'),
      until: z.string().optional().describe('YYYY-MM-DD: only up to this day, inclusive.'),
    }),
    risk: 'low',
    forAgents: true,
    async execute({ query, limit = DEFAULT_HITS, since, until }, { now, signal }, { caller, target }) {
      if (query.trim() === '') return failed('There is nothing to search for in an empty query.');
      if ((since && !isDate(since)) || (until && !isDate(until))) {
        return failed('since and until must be real days, written YYYY-MM-DD.');
      }
      const asked = {
        text: query,
        limit,
        now,
        ...(since && { since: startOf(since, zone) }),
        ...(until && { until: startOf(until, zone, 1) }),
      };
      const own = await recall.search(target, asked, signal);
      const isOwners = await isOwnersOrder(caller);
      const notes = isOwners ? (await recall.search(WORKSPACE, asked, signal)).hits : [];
      const hits = merged(own.hits, notes.map(ofWorkspace)).slice(0, limit);
      if (hits.length === 0) return done('Nothing was found. Other words may find more.');
      const origin = hits.some(isFromOutside) ? 'outside' : 'inside';
      return doneFrom(origin, shown(hits.map((hit) => recalledLine(hit, zone)).join('\n')));
    },
  });
}

/** Keeps the order of each list. */
function merged(own: readonly Recalled[], notes: readonly Recalled[]): Recalled[] {
  const hits: Recalled[] = [];
  const left = [...notes];
  for (const hit of own) {
    while (left[0] !== undefined && left[0].relevance > hit.relevance) hits.push(...left.splice(0, 1));
    hits.push(hit);
  }
  return [...hits, ...left];
}

/** Tells a workspace day from one of the chat. */
function ofWorkspace(hit: Recalled): Recalled {
  const { source } = hit;
  if (source.kind === 'message') return hit;
  return { ...hit, source: { ...source, file: `workspace/${source.file}` } };
}

/** Start of a day, or of the day `later` days after it. */
function startOf(day: string, zone: Zone, later = 0): number {
  const [year = 0, month = 0, date = 0] = day.split('-').map(Number);
  return localMidnight(year, month, date + later, zone);
}
