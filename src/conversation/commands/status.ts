/** `/status` (without secrets), `/help`, `/whoami`, `/usage`. */
import { sizeInWords } from '../../core/cut.js';
import { type PersonaId, roomParts } from '../../core/ids.js';
import type { Usage } from '../../core/model.js';
import { type Persona, personaName } from '../../core/persona.js';
import type { Amount, UsageStore } from '../../core/store.js';
import { MILLION } from '../daily-limits.js';
import { presentIn } from '../participants.js';
import { nameInWords } from '../quoting.js';
import type { LimitStatus } from '../services.js';
import { type ChatCommand, type CommandCall, type CommandServices, changesNothing } from './command.js';

export const status: ChatCommand = {
  name: 'status',
  aliases: [],
  description: 'Show my status',
  changes: changesNothing,
  async run({ command, isOwner }, services) {
    const { chat, room } = command;
    const now = services.clock.now();
    const personas = await services.personas.list(chat.id);
    const persona = personas.find(({ id }) => id === chat.activePersona);
    const others = presentIn(chat, personas)
      .slice(1)
      .map((id) => personaName(personas, id));
    const channel = services.channels.get(chat.channel)?.status();
    const last = await services.store.lastReply(room);
    const lines = [
      `coterie ${services.facts.version}, running for ${duration(now - services.facts.startedAt)}`,
      `Persona: ${nameInWords(persona?.name ?? chat.activePersona)}${others.length === 0 ? '' : ` (also here: ${others.map(nameInWords).join(', ')})`}`,
      `Model: ${persona?.model ?? services.facts.model}`,
      `Channel: ${chat.channel}, ${channel?.connected ? 'connected' : 'not connected'}`,
      `Last reply here: ${last ? services.zone.time(last.at) : 'none yet'}`,
    ];
    const { vectors } = services.recall.status();
    if (vectors.state === 'failing') {
      lines.push(
        `Memory search: keywords only since ${services.zone.time(vectors.since)}, because the embedding server is unreachable`,
      );
    }
    if (isOwner) {
      const asked = await services.store.askedCalls(now);
      if (asked.length > 0)
        lines.push(`Pending approvals: ${asked.map(({ id, tool }) => `${tool} (${id})`).join(', ')}`);
      const { waiting, running, undelivered, parked } = await services.store.counts();
      const { indexed, waiting: unindexed, vectors: by, vectorsWaiting } = services.recall.status();
      const meaning =
        by.state === 'off' ? 'keywords' : `keywords and meaning, ${vectorsWaiting} vectors missing`;
      lines.push(`Memory search: ${meaning}; ${indexed} pieces indexed, ${unindexed} waiting`);
      lines.push(
        `All chats: ${waiting} messages waiting, ${running} turns running, ${undelivered} replies to send, ${parked} parked`,
      );
      const { store, media } = await services.sizes();
      lines.push(`Kept: ${sizeInWords(store.bytes)} in the database, ${sizeInWords(media)} of files`);
    }
    return { text: lines.join('\n') };
  },
};

function duration(ms: number): string {
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${Math.floor(minutes / 1440)} days`;
}

export const help: ChatCommand = {
  name: 'help',
  aliases: [],
  description: 'Show the commands',
  changes: changesNothing,
  async run(_call, { commands }) {
    const lines = commands.map(({ name, aliases, description }) => {
      const names = [name, ...aliases].map((each) => `/${each}`).join(', ');
      return `${names}: ${description}`;
    });
    return {
      text: `${lines.join('\n')}\n\nTo address another persona in one message, begin with its name: \`luna: good morning\`.`,
    };
  },
};

export const whoami: ChatCommand = {
  name: 'whoami',
  aliases: [],
  description: 'Show your id, this chat’s id and your rights',
  changes: changesNothing,
  async run({ command, isOwner }) {
    const { threadId } = roomParts(command.room);
    const lines = [
      `You are ${nameInWords(command.sender.name)} (\`${command.sender.id}\`).`,
      `This chat is \`${command.chat.id}\`${threadId === null ? '' : `, topic \`${threadId}\``}.`,
      isOwner ? 'You are an owner.' : 'You are not an owner.',
    ];
    return { text: lines.join('\n') };
  },
};

const DAY_MS = 86_400_000;

/**
 * Usage of this chat today and over thirty days, and the remaining limits of the chat and the person who asks; for an
 * owner also the usage of all chats. Token counts are the model servers' own, or estimates.
 */
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

/** One line per daily limit; persona limits for the active persona and those with usage. */
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
      // Only owners see the usage of other chats.
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
