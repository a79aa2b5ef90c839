/** `read_memory` and `write_memory`: principles, a whole MEMORY.md, the daily log; and the list of the memory tools. */
import * as z from 'zod';
import { unescaped } from '../core/elements.js';
import { entryLine } from '../core/entry.js';
import type { Memory, Tier1By } from '../core/memory.js';
import { originOf } from '../core/origin.js';
import { type AnyTool, seenKey, type Tool, type ToolContext, type ToolResult } from '../core/tool.js';
import { type Allowed, authorise, originThere } from './authorise.js';
import { dayIn, daysBetween, isDay } from './dates.js';
import { done, doneFrom, failed, fits, runTool, shown, unsaved } from './results.js';
import { refuseSecret } from './secret-refusal.js';
import { originOfTiers, readTieredMemory, TIERS, writeTieredMemory } from './tiered-memory.js';

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
