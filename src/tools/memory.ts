/** `read_memory` and `write_memory`: principles, a whole MEMORY.md, the daily log; and the list of the memory tools. */
import * as z from 'zod';
import { cutAt } from '../core/cut.js';
import { localMidnight, type Zone } from '../core/dates.js';
import {
  changedLines,
  entryLine,
  type Memory,
  type SeenTier,
  type Tier,
  type Tier1By,
} from '../core/memory.js';
import { type Origin, originOf, unescaped, writtenBack } from '../core/origin.js';
import {
  isFromOutside,
  type Recall,
  type Recalled,
  type RecallResult,
  recalledLine,
  WORKSPACE,
} from '../core/recall.js';
import {
  type AnyTool,
  type Authorisation,
  isOwnersOrder,
  seenKey,
  type Tool,
  type ToolContext,
  type ToolResult,
} from '../core/tool.js';
import { type Allowed, authorise, originThere, type ToolTarget, tier1Refusal } from './authorise.js';
import {
  dayIn,
  daysBetween,
  done,
  doneFrom,
  failed,
  fits,
  isDay,
  refuseSecret,
  runTool,
  shown,
  unsaved,
} from './results.js';

export function memoryTools(memory: Memory, tier1By: Tier1By): AnyTool[] {
  return [
    readTieredMemory(memory),
    writeTieredMemory(memory, tier1By),
    readMemory(memory),
    writeMemory(memory),
  ];
}

/** For a draft of the tiers: the daily log is read only. */
export function draftTools(draft: Memory, tier1By: Tier1By): AnyTool[] {
  return [readTieredMemory(draft), writeTieredMemory(draft, tier1By), readMemory(draft)];
}

const date = z.string().optional().describe('YYYY-MM-DD. Left out: today.');
const chatId = z.string().optional();

const readParameters = z.object({
  scope: z
    .enum(['global', 'chat', 'chat_daily'])
    .describe('global: the principles. chat: your whole MEMORY.md. chat_daily: the daily log of the chat.'),
  date,
  chat_id: chatId,
  persona_id: z.string().optional(),
});

function readMemory(memory: Memory): Tool<z.infer<typeof readParameters>> {
  const name = 'read_memory';
  return {
    name,
    description: 'Reads the principles, your whole memory file, or one day of the daily log.',
    hint: 'read the principles, your whole memory file, or a day of the daily log',
    parameters: readParameters,
    risk: 'low',
    execute: (parameters, context) =>
      runTool(name, context, async () => {
        const allowed = await authorise(context, parameters);
        if (!allowed.ok) return failed(allowed.reason);
        switch (parameters.scope) {
          case 'global':
            return done(shown(await memory.principles()) || '(There are no principles.)');
          case 'chat':
            return readWhole(memory, allowed, context);
          case 'chat_daily': {
            const day = parameters.date || dayIn(context.timezone, context.now);
            if (!isDay(day)) return failed(NO_DAY);
            const { chatId } = allowed.target;
            const text = await memory.readDaily(chatId, day);
            const there = originThere(allowed.caller, allowed.target);
            const origin = originOf([{ origin: there }, { origin: await memory.originOfDay(chatId, day) }]);
            return doneFrom(origin, shown(text) || `(Nothing is in the daily log of ${day}.)`);
          }
        }
      }),
  };
}

const writeParameters = z.object({
  // Not an enum, so that a model that tries another scope is told why it cannot.
  scope: z.string().meta({ enum: ['chat_daily'] }),
  content: z.string().describe('One short line: an outcome, a decision, a reference. No transcripts.'),
  date,
  chat_id: chatId,
});

function writeMemory(memory: Memory): Tool<z.infer<typeof writeParameters>> {
  const name = 'write_memory';
  return {
    name,
    description: 'Adds a line to the daily log of the chat.',
    hint: 'add a line to the daily log of this chat (scope chat_daily)',
    parameters: writeParameters,
    risk: 'medium',
    execute: (parameters, context) =>
      runTool(
        name,
        context,
        async () => {
          const allowed = await authorise(context, parameters);
          if (!allowed.ok) return failed(allowed.reason);
          if (parameters.scope === 'global') return failed(READ_ONLY);
          if (parameters.scope !== 'chat_daily') return failed(ONLY_DAILY);
          const day = parameters.date || dayIn(context.timezone, context.now);
          if (!isDay(day)) return failed(NO_DAY);
          const misplaced = outside(day, dayIn(context.timezone, context.now));
          if (misplaced !== null) return failed(misplaced);
          const line = entryLine(unescaped(parameters.content));
          if (line === '') return failed('There is no content to add; nothing was written.');
          const most = memory.budgets.dailyPerDayMaxChars;
          if (line.length > most) return failed(tooLong(line.length, most));
          const refusal = await refuseSecret(name, parameters.content, '', context);
          if (refusal !== null) return refusal;
          if (context.signal.aborted) return unsaved('Stopped: nothing was written.');
          const { cause, signal } = context;
          const outcome = await memory.appendDaily(allowed.target.chatId, day, line, { cause, signal });
          return done(
            outcome === 'added'
              ? `Added to the daily log of ${day}: ${shown(line)}`
              : `This very line stands in the daily log of ${day} already; nothing was added.`,
          );
        },
        unsaved,
      ),
  };
}

/** A turn that was shown the whole file has seen its tiers and may replace them. */
async function readWhole(
  memory: Memory,
  { target, caller }: Allowed,
  context: ToolContext,
): Promise<ToolResult> {
  // Read before the text that is shown: where somebody writes in between, a tier counts as seen in its older form,
  // and a write that builds on that is refused.
  const tiers = await Promise.all(TIERS.map((tier) => memory.readTier(target, tier)));
  const text = await memory.readAll(target);
  if (fits(text)) {
    for (const [n, tier] of TIERS.entries()) {
      context.seen.set(seenKey(target.chatId, target.personaId, tier), { text: tiers[n] ?? '' });
    }
  }
  return doneFrom(await originOfTiers(memory, caller, target), shown(text) || '(This memory is empty.)');
}

/** A line of which no prompt would show the end. */
function tooLong(chars: number, most: number): string {
  const [has, may] = [chars, most].map((number) => number.toLocaleString('en'));
  return `Nothing was added: the line has ${has} characters, and one of the daily log may have ${may}. Shorten it.`;
}

/** A day ahead it may be already where whoever speaks is. Ten years back reaches behind any window that is flushed late. */
const MOST_DAYS_AHEAD = 1;
const MOST_DAYS_BACK = 3_660;

/** Why nothing is logged under a day: what is to come, or was long ago, did not happen in the chat on that day. */
function outside(day: string, today: string): string | null {
  const ahead = daysBetween(today, day);
  if (ahead > MOST_DAYS_AHEAD) {
    return `Nothing was written: ${day} is still to come (today is ${today}), and the daily log says what has happened. What is planned belongs into a tier, with its date.`;
  }
  if (ahead < -MOST_DAYS_BACK) {
    return `Nothing was written: ${day} is more than ten years ago (today is ${today}), and the daily log says what happened in this chat. What was long ago belongs into a tier, with its date.`;
  }
  return null;
}

const NO_DAY = 'The date must be a real day, written YYYY-MM-DD.';
const READ_ONLY =
  'Principles are read-only: only the operator edits them. Your own memory is written with write_tiered_memory.';
const ONLY_DAILY =
  'write_memory takes only the scope chat_daily. Tiers are written with write_tiered_memory.';

// `read_tiered_memory` and `write_tiered_memory`: one tier of a persona's MEMORY.md, seen before it is replaced.

const TIERS: readonly Tier[] = [1, 2, 3];

/** How much is told of what a write took away. */
const MOST_LINES = 20;
const LINE_CHARS = 160;

// Models write the number as text, too.
const tier = z.coerce.number().pipe(z.literal([1, 2, 3]));
const whose = {
  chat_id: z.string().optional(),
  persona_id: z.string().optional(),
};

const readTierParameters = z.object({
  tier: tier.optional().describe('1, 2 or 3. Left out: all three.'),
  ...whose,
});

const writeTierParameters = z.object({
  tier: tier.describe('1 long term, 2 mid term, 3 short term.'),
  content: z
    .string()
    .describe('The whole new text of the tier, Markdown. It replaces the old text; empty clears it.'),
  ...whose,
});

export function readTieredMemory(memory: Memory): Tool<z.infer<typeof readTierParameters>> {
  const name = 'read_tiered_memory';
  return {
    name,
    description: 'Reads a tier of your memory (MEMORY.md), whole, as it stands now.',
    hint: 'read a tier of your memory, whole',
    parameters: readTierParameters,
    risk: 'low',
    execute: (parameters, context) =>
      runTool(name, context, async () => {
        const allowed = await authorise(context, parameters, 'agents too');
        if (!allowed.ok) return failed(allowed.reason);
        const origin = await originOfTiers(memory, allowed.caller, allowed.target);
        if (parameters.tier !== undefined) {
          return doneFrom(origin, await readOne(memory, allowed.target, parameters.tier, context));
        }
        const texts: string[] = [];
        for (const each of TIERS) {
          texts.push(`Tier ${each}:\n${await readOne(memory, allowed.target, each, context)}`);
        }
        return doneFrom(origin, texts.join('\n\n'));
      }),
  };
}

/** Of the whole file: which tier a line stands in says little of what it led to. */
async function originOfTiers(memory: Memory, caller: Authorisation, target: ToolTarget): Promise<Origin> {
  return originOf([{ origin: originThere(caller, target) }, { origin: await memory.originOf(target) }]);
}

function writeTieredMemory(memory: Memory, tier1By: Tier1By): Tool<z.infer<typeof writeTierParameters>> {
  const name = 'write_tiered_memory';
  return {
    name,
    description: 'Replaces one tier of your memory (MEMORY.md): include what should stay.',
    hint: 'write a tier anew',
    parameters: writeTierParameters,
    risk: 'medium',
    execute: (parameters, context) =>
      runTool(
        name,
        context,
        async () => {
          const allowed = await authorise(context, parameters);
          if (!allowed.ok) return failed(allowed.reason);
          const { tier } = parameters;
          const forbidden = tier === 1 ? await tier1Refusal(allowed.caller, tier1By) : null;
          if (forbidden !== null) return failed(forbidden);
          const seen = context.seen.get(seenKey(allowed.target.chatId, allowed.target.personaId, tier));
          const content = writtenBack(parameters.content, textOf(seen));
          const bytes = Buffer.byteLength(content);
          if (bytes > memory.budgets.tierBytes)
            return failed(tooLarge(tier, bytes, memory.budgets.tierBytes));
          const refusal = await refuseSecret(name, content, textOf(seen), context);
          if (refusal !== null) return refusal;
          if (context.signal.aborted) return unsaved('Stopped: nothing was written.');
          return write(memory, allowed, tier, content, seen, context);
        },
        unsaved,
      ),
  };
}

function tooLarge(tier: Tier, bytes: number, most: number): string {
  const [has, may] = [bytes, most].map((number) => number.toLocaleString('en'));
  return `Tier ${tier} was not written: the content has ${has} bytes, and a tier may hold ${may}. Shorten it and write it again.`;
}

async function write(
  memory: Memory,
  { target, caller }: Allowed,
  tier: Tier,
  content: string,
  seen: SeenTier | undefined,
  context: ToolContext,
): Promise<ToolResult> {
  const { cause, signal } = context;
  const outcome = await memory.writeTier(target, tier, content, seen, { cause, signal });
  switch (outcome.kind) {
    case 'written': {
      // Only what is as the writer saw it gets written over, so this is what stood there before.
      const written =
        outcome.text === textOf(seen)
          ? `Tier ${tier} said just that already; nothing was changed.`
          : `Tier ${tier} is written.`;
      const went = takenAway(textOf(seen), outcome.text);
      return done(`${written} ${nowShown(target, tier, outcome.text, context)}${went}`);
    }
    case 'changed':
      return {
        ...doneFrom(await originOfTiers(memory, caller, target), ''),
        ...unsaved(
          `Tier ${tier} was not written, for you had not seen the whole of it as it is now. ` +
            `${nowShown(target, tier, outcome.current, context)}\n\nMerge your change into that and write it again.`,
        ),
      };
    case 'refused':
      return failed(`Tier ${tier} was not written. ${outcome.reason}`);
  }
}

/** The lines that a write took away: a model that rewrites a whole tier drops some without noticing. */
function takenAway(before: string, after: string): string {
  const { went } = changedLines(before, after);
  if (went.length === 0) return '';
  const listed = went.slice(0, MOST_LINES).map((line) => {
    const short = line.length <= LINE_CHARS ? line : `${cutAt(line, LINE_CHARS)} …`;
    return short.startsWith('- ') ? short : `- ${short}`;
  });
  if (went.length > MOST_LINES) listed.push(`- and ${went.length - MOST_LINES} more`);
  return `\n\nIt no longer holds:\n${listed.join('\n')}`;
}

/** What stood in a tier, as far as this turn has seen it. */
function textOf(seen: SeenTier | undefined): string {
  return seen !== undefined && 'text' in seen ? seen.text : '';
}

async function readOne(
  memory: Memory,
  target: ToolTarget,
  tier: Tier,
  context: ToolContext,
): Promise<string> {
  const text = await memory.readTier(target, tier);
  note(target, tier, text, context);
  return text === '' ? `(Tier ${tier} is empty.)` : shown(text);
}

function nowShown(target: ToolTarget, tier: Tier, text: string, context: ToolContext): string {
  note(target, tier, text, context);
  return text === '' ? 'It is empty now.' : `It now says:\n\n${shown(text)}`;
}

/** What the model was shown of a tier is what it may replace. */
function note(target: ToolTarget, tier: Tier, text: string, context: ToolContext): void {
  context.seen.set(seenKey(target.chatId, target.personaId, tier), fits(text) ? { text } : { cut: true });
}

// `search_memory`: what was said and noted before, in whatever words. The scope is the caller's own, made by the
// gateway: there is no parameter for another chat or persona. What an owner asks for in a control chat is looked for in the
// notes of the workspace, too.

const DEFAULT_HITS = 10;
const MOST_HITS = 50;

const day = z.string().optional();
const searchParameters = z.object({
  query: z.string().describe('What you look for, in plain words: names, things, what was asked or promised.'),
  limit: z.coerce.number().int().min(1).max(MOST_HITS).optional().describe(`Left out: ${DEFAULT_HITS}.`),
  since: day.describe('YYYY-MM-DD: only from this day on.'),
  until: day.describe('YYYY-MM-DD: only up to this day, inclusive.'),
});

export function searchMemory(recall: Recall, zone: Zone): Tool<z.infer<typeof searchParameters>> {
  return {
    name: 'search_memory',
    description:
      'Searches your memory, the daily log and everything that was said to you or in your presence in this chat, ' +
      'however long ago. Use it before you say that you do not know or do not remember.',
    hint: 'search what was said and noted in this chat, however long ago',
    parameters: searchParameters,
    risk: 'low',
    async execute({ query, limit = DEFAULT_HITS, since, until }, context) {
      if (context.authorisation === undefined)
        return failed('Permission denied: this call carries no authorisation.');
      if (query.trim() === '') return failed('There is nothing to search for in an empty query.');
      if ((since && !isDay(since)) || (until && !isDay(until))) {
        return failed('since and until must be real days, written YYYY-MM-DD.');
      }
      const { chatId, personaId } = context.authorisation;
      const asked = {
        ...{ text: query, limit, now: context.now },
        ...(since ? { since: startOf(since, zone) } : {}),
        ...(until ? { until: startOf(until, zone, 1) } : {}),
      };
      const own = await recall.search({ chatId, personaId }, asked, context.signal);
      const notes = (await isOwnersOrder(context.authorisation))
        ? await recall.search(WORKSPACE, asked, context.signal)
        : NOTHING;
      const hits = merged(own.hits, notes.hits.map(ofWorkspace)).slice(0, limit);
      if (hits.length === 0) return done('Nothing was found. Other words may find more.');
      const found = done(shown(hits.map((hit) => recalledLine(hit, zone)).join('\n')));
      return hits.some(isFromOutside) ? { ...found, outside: true } : found;
    },
  };
}

const NOTHING: Pick<RecallResult, 'hits'> = { hits: [] };

/** Each list in its own order. */
function merged(own: readonly Recalled[], notes: readonly Recalled[]): Recalled[] {
  const hits: Recalled[] = [];
  const left = [...notes];
  for (const hit of own) {
    while (left[0] !== undefined && left[0].relevance > hit.relevance) hits.push(...left.splice(0, 1));
    hits.push(hit);
  }
  return [...hits, ...left];
}

/** So that nobody takes a day of it for one of the chat. */
function ofWorkspace(hit: Recalled): Recalled {
  const { source } = hit;
  return source.kind === 'message'
    ? hit
    : { ...hit, source: { ...source, file: `workspace/${source.file}` } };
}

/** When a day begins, or one so many days later. */
function startOf(day: string, zone: Zone, later = 0): number {
  const [year = 0, month = 0, date = 0] = day.split('-').map(Number);
  return localMidnight(year, month, date + later, zone);
}
