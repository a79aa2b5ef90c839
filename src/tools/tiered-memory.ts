/** `read_tiered_memory` and `write_tiered_memory`: one tier of a persona's MEMORY.md, seen before it is replaced. */
import * as z from 'zod';
import { changedLines } from '../core/changed-lines.js';
import { cutAt } from '../core/cut.js';
import { writtenBack } from '../core/elements.js';
import type { Memory, SeenTier, Tier, Tier1By } from '../core/memory.js';
import { type Origin, originOf } from '../core/origin.js';
import { type Authorisation, seenKey, type Tool, type ToolContext, type ToolResult } from '../core/tool.js';
import { type Allowed, authorise, originThere, type Target, tier1Refusal } from './authorise.js';
import { done, doneFrom, failed, fits, runTool, shown, unsaved } from './results.js';
import { refuseSecret } from './secret-refusal.js';

export const TIERS: readonly Tier[] = [1, 2, 3];

/** How much is told of what a write took away. */
const MOST_LINES = 20;
const LINE_CHARS = 160;

// Models write the number as text, too.
const tier = z.coerce.number().pipe(z.literal([1, 2, 3]));
const whose = {
  chat_id: z.string().optional(),
  persona_id: z.string().optional(),
};

const readParameters = z.object({
  tier: tier.optional().describe('1, 2 or 3. Left out: all three.'),
  ...whose,
});

const writeParameters = z.object({
  tier: tier.describe('1 long term, 2 mid term, 3 short term.'),
  content: z
    .string()
    .describe('The whole new text of the tier, Markdown. It replaces the old text; empty clears it.'),
  ...whose,
});

export function readTieredMemory(memory: Memory): Tool<z.infer<typeof readParameters>> {
  const name = 'read_tiered_memory';
  return {
    name,
    description: 'Reads a tier of your memory (MEMORY.md), whole, as it stands now.',
    hint: 'read a tier of your memory, whole',
    parameters: readParameters,
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
export async function originOfTiers(memory: Memory, caller: Authorisation, target: Target): Promise<Origin> {
  return originOf([{ origin: originThere(caller, target) }, { origin: await memory.originOf(target) }]);
}

export function writeTieredMemory(memory: Memory, tier1By: Tier1By): Tool<z.infer<typeof writeParameters>> {
  const name = 'write_tiered_memory';
  return {
    name,
    description: 'Replaces one tier of your memory (MEMORY.md): include what should stay.',
    hint: 'write a tier anew',
    parameters: writeParameters,
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

async function readOne(memory: Memory, target: Target, tier: Tier, context: ToolContext): Promise<string> {
  const text = await memory.readTier(target, tier);
  note(target, tier, text, context);
  return text === '' ? `(Tier ${tier} is empty.)` : shown(text);
}

function nowShown(target: Target, tier: Tier, text: string, context: ToolContext): string {
  note(target, tier, text, context);
  return text === '' ? 'It is empty now.' : `It now says:\n\n${shown(text)}`;
}

/** What the model was shown of a tier is what it may replace. */
function note(target: Target, tier: Tier, text: string, context: ToolContext): void {
  context.seen.set(seenKey(target.chatId, target.personaId, tier), fits(text) ? { text } : { cut: true });
}
