/** An agent's `read_memory` and `write_memory`: its own internal space, never memory of personas. */
import * as z from 'zod';
import { isDate } from '../core/daily-log.js';
import type { Memory } from '../core/memory.js';
import { noted, originOf } from '../core/origin.js';
import type { AgentSpace, Agents } from '../core/task.js';
import type { AnyTool } from '../core/tool.js';
import { type Allowed, defineTool } from './authorise.js';
import { lineOf } from './memory.js';
import { dayIn, done, doneFrom, failed, NO_DAY, shown } from './results.js';

/** The limit of a day in a chat's daily log. */
const LONGEST_LINE = 4_000;
const NO_AGENT = 'Permission denied: this is the memory of an agent.';
const READ_ONLY = 'Principles are read-only: only the operator edits them.';
const ONLY_DAILY =
  'write_memory takes only the scope chat_daily. MEMORY.md of your internal space is a file that you may edit.';

const date = z.string().optional().describe('YYYY-MM-DD. Left out: today.');

export function agentMemoryTools({ agents, memory }: { agents: Agents; memory: Memory }): AnyTool[] {
  return [readOwn(agents, memory), writeOwn(agents)];
}

function readOwn(agents: Agents, memory: Memory) {
  return defineTool({
    name: 'read_memory',
    description: 'Reads the principles, your own MEMORY.md, or one day of your memories.',
    hint: 'read the principles, your own memory file, or a day of your memories',
    parameters: z.object({
      scope: z
        .enum(['global', 'chat', 'chat_daily'])
        .describe(
          'global: the principles. chat: your whole MEMORY.md. chat_daily: one day of your memories.',
        ),
      date,
    }),
    risk: 'low',
    forAgents: true,
    usesFiles: true,
    async execute({ scope, date: given }, { timezone, now }, allowed) {
      const space = spaceOf(allowed);
      if (space === null) return failed(NO_AGENT);
      if (scope === 'global') return done(shown(await memory.principles()) || '(There are no principles.)');
      const day = given || dayIn(timezone, now);
      if (scope === 'chat_daily' && !isDate(day)) return failed(NO_DAY);
      const what = scope === 'chat' ? 'MEMORY.md' : { date: day };
      // The shared text comes first.
      const found = [await agents.read({ ...space, chatId: null }, what), await agents.read(space, what)];
      const texts = found.map(({ text }) => text).filter((text) => text.trim() !== '');
      const nothing = scope === 'chat' ? '(This memory is empty.)' : `(Nothing was noted on ${day}.)`;
      return doneFrom(originOf(found), shown(texts.join('\n')) || nothing);
    },
  });
}

function writeOwn(agents: Agents) {
  return defineTool({
    name: 'write_memory',
    description: 'Notes a line among your own memories, for later tasks.',
    hint: 'note a line among your own memories (scope chat_daily)',
    parameters: z.object({
      // Not an enum, so that a model that tries another scope is told why it cannot.
      scope: z.string().meta({ enum: ['chat_daily'] }),
      content: z.string().describe('One short line: an outcome, a decision, a reference. No transcripts.'),
      date,
    }),
    risk: 'medium',
    forAgents: true,
    usesFiles: true,
    async execute(given, context, allowed) {
      const space = spaceOf(allowed);
      if (space === null) return failed(NO_AGENT);
      const written = await lineOf(given, context, {
        readOnly: READ_ONLY,
        onlyDaily: ONLY_DAILY,
        daysAhead: 0,
        elsewhere: 'MEMORY.md',
        mostChars: LONGEST_LINE,
      });
      if ('content' in written) return written;
      const isTainted = context.isTainted === true;
      // The line outlives this task, so it states its own origin.
      const line = noted(written.line, isTainted ? 'outside' : 'inside');
      const isShared = allowed.caller.agent?.shared.mayWrite === true && !isTainted;
      await agents.append(isShared ? { ...space, chatId: null } : space, written.day, line, context.signal);
      return done(`Noted on ${written.day}: ${shown(line)}`);
    },
  });
}

/** The calling agent's internal space for its chat; null for a persona. */
function spaceOf({ caller: { agent, chatId } }: Allowed): AgentSpace | null {
  return agent === undefined ? null : { agent: agent.id, chatId };
}
