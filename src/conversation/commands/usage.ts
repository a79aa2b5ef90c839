/** `/usage`: turns and tokens of this chat, today and over thirty days, as the model servers counted them. */
import type { Usage } from '../../core/model.js';
import type { UsageStore } from '../../core/store.js';
import { type Command, changesNothing } from './command.js';

const DAY_MS = 86_400_000;

export const usage: Command = {
  name: 'usage',
  aliases: [],
  description: 'Show how many tokens this chat has used',
  changes: changesNothing,
  async run({ command }, { store, clock }) {
    const now = clock.now();
    const today = await store.usage(command.chat.id, now - (now % DAY_MS));
    const month = await store.usage(command.chat.id, now - 30 * DAY_MS);
    if (month.length === 0) return { text: 'Nothing has been used in this chat in the last thirty days.' };
    return { text: `Today (UTC):\n${table(today)}\n\nLast thirty days:\n${table(month)}` };
  },
};

function table(rows: Awaited<ReturnType<UsageStore['usage']>>): string {
  if (rows.length === 0) return '- nothing';
  return rows
    .map(
      ({ personaId, turns, usage }) =>
        `- ${personaId}: ${turns} ${turns === 1 ? 'answer' : 'answers'}, ${readIn(usage)}, ${usage.outputTokens} written`,
    )
    .join('\n');
}

function readIn({ inputTokens, cachedTokens = 0 }: Usage): string {
  return `${inputTokens} tokens read${cachedTokens === 0 ? '' : ` (${cachedTokens} of them from the server’s cache)`}`;
}
