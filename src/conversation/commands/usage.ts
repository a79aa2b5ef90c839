/**
 * `/usage`: the usage of this chat today and over thirty days, and the remaining limits of the chat and the person who
 * asks; for an owner also the usage of all chats. Tokens are those that the model servers counted, or estimates.
 */
import type { PersonaId } from '../../core/ids.js';
import type { Usage } from '../../core/model.js';
import { type Persona, personaName } from '../../core/persona.js';
import type { Amount, UsageStore } from '../../core/store.js';
import { MILLION } from '../daily-limits.js';
import type { LimitStatus } from '../services.js';
import { type ChatCommand, type CommandCall, type CommandServices, changesNothing } from './command.js';

const DAY_MS = 86_400_000;

export const usage: ChatCommand = {
  name: 'usage',
  aliases: [],
  description: 'Show this chat’s usage and limits',
  changes: changesNothing,
  async run(call, services) {
    const { store, clock, zone } = services;
    const { chat } = call.command;
    const now = clock.now();
    const personas = await services.personas.list(chat.id);
    const month = await store.usage(chat.id, now - 30 * DAY_MS);
    const spent = await store.spentOn({ chatId: chat.id, personId: null, now });
    const isForOwner = call.isOwner && chat.kind === 'direct';
    const all = isForOwner ? `All chats together today: ${inWords(spent.all)}` : '';
    const parts =
      month.length === 0
        ? ['This chat has used nothing in the last thirty days.']
        : [
            `Today (${zone.name}):\n${table(await store.usage(chat.id, now), personas)}`,
            `Last thirty days:\n${table(month, personas)}`,
          ];
    const limits = await limitsFor(call, services, personas, [...spent.personas.keys()]);
    if (limits.length > 0) limits.unshift(`Left until midnight (${zone.name}):`);
    return { text: [...parts, all, limits.join('\n')].filter((part) => part !== '').join('\n\n') };
  },
};

function table(rows: Awaited<ReturnType<UsageStore['usage']>>, personas: Persona[]): string {
  if (rows.length === 0) return '- nothing';
  return rows
    .map(({ personaId, turns, usage }) => {
      const answers = `${turns} ${turns === 1 ? 'answer' : 'answers'}`;
      const tokens = `${readIn(usage)}, ${usage.outputTokens} written`;
      return `- ${personaName(personas, personaId)}: ${answers}, ${tokens}${costOf(usage.cost)}`;
    })
    .join('\n');
}

function readIn({ inputTokens, cachedTokens = 0 }: Usage): string {
  return `${inputTokens} tokens read${cachedTokens === 0 ? '' : ` (${cachedTokens} of them from the server’s cache)`}`;
}

function inWords({ tokens, cost }: Amount): string {
  return `${tokens} tokens${costOf(cost)}`;
}

function costOf(cost = 0): string {
  return cost === 0 ? '' : `, cost ${money(cost)}`;
}

function money(cost: number): string {
  return String(Number((cost / MILLION).toFixed(4)));
}

/** A line for each limit of the day; a persona's own for those that used something, and for the active one. */
async function limitsFor(
  { command: { chat, room, sender }, isOwner }: CommandCall,
  { dailyLimits }: CommandServices,
  personas: Persona[],
  used: PersonaId[],
): Promise<string[]> {
  const statusesOf = (personaId: PersonaId) => dailyLimits.statuses({ room, personaId, personId: sender.id });
  const lines: string[] = [];
  for (const personaId of [...new Set([chat.activePersona, ...used])]) {
    for (const standing of await statusesOf(personaId)) {
      const { scope } = standing;
      if (scope !== 'persona' && personaId !== chat.activePersona) continue;
      const whose = {
        day: 'all chats',
        chat: 'this chat',
        persona: personaName(personas, personaId),
        person: 'you',
      };
      // Only an owner sees the usage of other chats.
      lines.push(`- ${whose[scope]}: ${scope === 'day' && !isOwner ? shareOf(standing) : leftOf(standing)}`);
    }
  }
  return lines;
}

function leftOf({ unit, used, most }: LimitStatus): string {
  const left = Math.max(0, most - used);
  return unit === 'tokens' ? `${left} of ${most} tokens` : `${money(left)} of ${money(most)} in money`;
}

function shareOf({ unit, used, most }: LimitStatus): string {
  const share = most === 0 ? 0 : Math.max(0, Math.floor((100 * (most - used)) / most));
  return `${share} % of the ${unit}`;
}
