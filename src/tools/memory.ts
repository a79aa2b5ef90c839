/** The memory tools: tiers (beside), whole files, principles to read, the daily log to read and add to. */
import * as z from 'zod';
import { entryLine } from '../core/entry.js';
import type { Memory } from '../core/memory.js';
import { type AnyTool, seenKey, type Tool, type ToolContext, type ToolResult } from '../core/tool.js';
import { authorise, type Target } from './authorise.js';
import { dayIn, isDay } from './dates.js';
import { keptOut } from './kept-out.js';
import { done, failed, fits, shown, unsaved, withoutFaults } from './results.js';
import { readTieredMemory, TIERS, writeTieredMemory } from './tiered-memory.js';

export function memoryTools(memory: Memory): AnyTool[] {
  return [readTieredMemory(memory), writeTieredMemory(memory), readMemory(memory), writeMemory(memory)];
}

const date = z.string().optional().describe('YYYY-MM-DD. Left out: today.');
const chatId = z.string().optional().describe('Left out: this chat.');

const readParameters = z.object({
  scope: z
    .enum(['global', 'chat', 'chat_daily'])
    .describe('global: the principles. chat: your whole MEMORY.md. chat_daily: the daily log of the chat.'),
  date,
  chat_id: chatId,
  persona_id: z.string().optional().describe('Left out: you.'),
});

function readMemory(memory: Memory): Tool<z.infer<typeof readParameters>> {
  const name = 'read_memory';
  return {
    name,
    description: 'Reads the principles, your whole memory file, or one day of the daily log.',
    parameters: readParameters,
    risk: 'low',
    repeatable: true,
    execute: (parameters, context) =>
      withoutFaults(name, context, async () => {
        const allowed = authorise(context, parameters);
        if (!allowed.ok) return failed(allowed.reason);
        switch (parameters.scope) {
          case 'global':
            return done(shown(await memory.principles()) || '(There are no principles.)');
          case 'chat':
            return readWhole(memory, allowed.target, context);
          case 'chat_daily': {
            const day = parameters.date || dayIn(context.timezone, context.now);
            if (!isDay(day)) return failed(NO_DAY);
            const text = await memory.readDaily(allowed.target.chatId, day);
            return done(shown(text) || `(Nothing is in the daily log of ${day}.)`);
          }
        }
      }),
  };
}

const writeParameters = z.object({
  // Not an enum, so that a model that tries another scope is told why it cannot.
  scope: z.string().meta({ enum: ['chat_daily'] }),
  content: z
    .string()
    .describe('One short line: an outcome, a decision, a reference. No transcripts, no secrets.'),
  date,
  chat_id: chatId,
});

function writeMemory(memory: Memory): Tool<z.infer<typeof writeParameters>> {
  const name = 'write_memory';
  return {
    name,
    description: 'Adds a line to the daily log of the chat.',
    parameters: writeParameters,
    risk: 'medium',
    repeatable: false,
    execute: (parameters, context) =>
      withoutFaults(
        name,
        context,
        async () => {
          const allowed = authorise(context, parameters);
          if (!allowed.ok) return failed(allowed.reason);
          if (parameters.scope === 'global') return failed(READ_ONLY);
          if (parameters.scope !== 'chat_daily') return failed(ONLY_DAILY);
          const day = parameters.date || dayIn(context.timezone, context.now);
          if (!isDay(day)) return failed(NO_DAY);
          const line = entryLine(parameters.content);
          if (line === '') return failed('There is no content to add; nothing was written.');
          const refusal = await keptOut(name, parameters.content, '', context);
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

/** Whoever was shown the whole file has seen its tiers. */
async function readWhole(memory: Memory, target: Target, context: ToolContext): Promise<ToolResult> {
  const text = await memory.readAll(target);
  if (fits(text)) {
    for (const tier of TIERS) {
      const seen = { text: await memory.readTier(target, tier) };
      context.seen.set(seenKey(target.chatId, target.personaId, tier), seen);
    }
  }
  return done(shown(text) || '(This memory is empty.)');
}

const NO_DAY = 'The date must be a real day, written YYYY-MM-DD.';
const READ_ONLY =
  'Principles are read-only: only the operator edits them. Your own memory is written with write_tiered_memory.';
const ONLY_DAILY =
  'write_memory takes only the scope chat_daily. Tiers are written with write_tiered_memory.';
