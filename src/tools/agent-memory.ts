/**
 * `read_memory` and `write_memory` of an agent on a task: they act on its own internal space (seed 004), of the chat that it works
 * for, or the one that its tasks share. The principles it may read; memory of personas it reads by `read_tiered_memory`, and never writes.
 */
import * as z from 'zod';
import { entryLine, type Memory } from '../core/memory.js';
import { noted, originOf, unescaped } from '../core/origin.js';
import type { AgentSpace, Agents } from '../core/task.js';
import type { AnyTool, Tool, ToolContext, ToolResult } from '../core/tool.js';
import { authorise } from './authorise.js';
import { dayIn, done, doneFrom, failed, isDay, refuseSecret, runTool, shown, unsaved } from './results.js';

interface Parts {
  agents: Pick<Agents, 'read' | 'append'>;
  memory: Pick<Memory, 'principles'>;
}

/** As many as a day in the daily log of a chat may show. */
const LONGEST_LINE = 4_000;

export function agentMemoryTools(parts: Parts): AnyTool[] {
  return [readMemory(parts), writeMemory(parts)];
}

const date = z.string().optional().describe('YYYY-MM-DD. Left out: today.');

const readParameters = z.object({
  scope: z
    .enum(['global', 'chat', 'chat_daily'])
    .describe('global: the principles. chat: your whole MEMORY.md. chat_daily: one day of your memories.'),
  date,
});

function readMemory({ agents, memory }: Parts): Tool<z.infer<typeof readParameters>> {
  const name = 'read_memory';
  return {
    name,
    description: 'Reads the principles, your own MEMORY.md, or one day of your memories.',
    hint: 'read the principles, your own memory file, or a day of your memories',
    parameters: readParameters,
    risk: 'low',
    execute: ({ scope, date: given }, context) =>
      runTool(name, context, async () => {
        const agent = await agentOf(context);
        if ('content' in agent) return agent;
        switch (scope) {
          case 'global':
            return done(shown(await memory.principles()) || '(There are no principles.)');
          case 'chat':
            return readBoth(agents, agent, 'MEMORY.md', '(This memory is empty.)');
          case 'chat_daily': {
            const day = given || dayIn(context.timezone, context.now);
            if (!isDay(day)) return failed(NO_DAY);
            return readBoth(agents, agent, { date: day }, `(Nothing was noted on ${day}.)`);
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
});

function writeMemory({ agents }: Parts): Tool<z.infer<typeof writeParameters>> {
  const name = 'write_memory';
  return {
    name,
    description: 'Notes a line among your own memories, for later tasks.',
    hint: 'note a line among your own memories (scope chat_daily)',
    parameters: writeParameters,
    risk: 'medium',
    execute: (given, context) =>
      runTool(
        name,
        context,
        async () => {
          const agent = await agentOf(context);
          if ('content' in agent) return agent;
          if (given.scope === 'global') return failed(READ_ONLY);
          if (given.scope !== 'chat_daily') return failed(ONLY_DAILY);
          const today = dayIn(context.timezone, context.now);
          const day = given.date || today;
          if (!isDay(day)) return failed(NO_DAY);
          if (day > today) return failed(`Nothing was written: ${day} is still to come (today is ${today}).`);
          const text = entryLine(unescaped(given.content));
          if (text === '') return failed('There is no content to add; nothing was written.');
          if (text.length > LONGEST_LINE) {
            return failed(
              `Nothing was added: the line has ${text.length} characters, and may have ${LONGEST_LINE}. Shorten it.`,
            );
          }
          const refusal = await refuseSecret(name, given.content, '', context);
          if (refusal !== null) return refusal;
          if (context.signal.aborted) return unsaved('Stopped: nothing was written.');
          // It outlives this task, in which it can be seen where it came from.
          const line = noted(text, context.isTainted === true ? 'outside' : 'inside');
          const isShared = agent.mayShare && context.isTainted !== true;
          await agents.append(isShared ? { ...agent, chatId: null } : agent, day, line, context.signal);
          return done(`Noted on ${day}: ${shown(line)}`);
        },
        unsaved,
      ),
  };
}

/** What its tasks share comes first. */
async function readBoth(
  agents: Parts['agents'],
  agent: AgentSpace,
  what: 'MEMORY.md' | { date: string },
  nothing: string,
): Promise<ToolResult> {
  const found = [await agents.read({ ...agent, chatId: null }, what), await agents.read(agent, what)];
  const texts = found.map(({ text }) => text).filter((text) => text.trim() !== '');
  return doneFrom(originOf(found), shown(texts.join('\n')) || nothing);
}

/** Whose internal space it is: that of the agent that calls, in its chat, and no other's. */
async function agentOf(context: ToolContext): Promise<(AgentSpace & { mayShare: boolean }) | ToolResult> {
  const allowed = await authorise(context, {}, 'agents too');
  if (!allowed.ok) return failed(allowed.reason);
  const { agent, chatId } = allowed.caller;
  if (agent === undefined) return failed('Permission denied: this is the memory of an agent.');
  return { agent: agent.id, chatId, mayShare: agent.shared.mayWrite };
}

const NO_DAY = 'The date must be a real day, written YYYY-MM-DD.';
const READ_ONLY = 'Principles are read-only: only the operator edits them.';
const ONLY_DAILY =
  'write_memory takes only the scope chat_daily. MEMORY.md of your internal space is a file that you may edit.';
