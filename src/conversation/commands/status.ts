/** `/status` (without secrets), `/help`, `/whoami`, `/usage`. */
import { sizeInWords } from '../../core/cut.js';
import { type PersonaId, roomParts } from '../../core/ids.js';
import { type Persona, personaName } from '../../core/persona.js';
import type { UsageStore } from '../../core/store.js';
import { MILLION } from '../daily-limits.js';
import { presentIn } from '../participants.js';
import { counted, nameInWords } from '../quoting.js';
import type { LimitStatus } from '../services.js';
import { type CommandCall, commandOf } from './command.js';

export const status = commandOf(
  'status',
  'Show my status',
  async ({ command, isOwner, clock, personas, channels, store, facts, zone, recall, sizes }) => {
    const { chat, room } = command;
    const now = clock.now();
    const all = await personas.list(chat.id);
    const persona = all.find(({ id }) => id === chat.activePersona);
    const others = presentIn(chat, all).slice(1);
    const also = others.map((id) => nameInWords(personaName(all, id))).join(', ');
    const isConnected = channels.get(chat.channel)?.status().connected;
    const { lastReply: last } = await store.roomNow(room);
    const { indexed, waiting: unindexed, vectors, vectorsWaiting } = recall.status();
    const lines = [
      `coterie ${facts.version}, running for ${duration(now - facts.startedAt)}`,
      `Persona: ${nameInWords(persona?.name ?? chat.activePersona)}${also === '' ? '' : ` (also here: ${also})`}`,
      `Model: ${persona?.model ?? facts.model}`,
      `Channel: ${chat.channel}, ${isConnected ? 'connected' : 'not connected'}`,
      `Last reply here: ${last ? zone.time(last.at) : 'none yet'}`,
    ];
    if (vectors.state === 'failing') {
      const since = zone.time(vectors.since);
      lines.push(`Memory search: keywords only since ${since}, because the embedding server is unreachable`);
    }
    if (!isOwner) return { text: lines.join('\n') };
    const asked = await store.askedCalls('open', now);
    if (asked.length > 0)
      lines.push(`Pending approvals: ${asked.map(({ id, tool }) => `${tool} (${id})`).join(', ')}`);
    const { waiting, running, undelivered, parked } = await store.counts();
    const meaning =
      vectors.state === 'off' ? 'keywords' : `keywords and meaning, ${vectorsWaiting} vectors missing`;
    const kept = await sizes();
    lines.push(
      `Memory search: ${meaning}; ${indexed} pieces indexed, ${unindexed} waiting`,
      `All chats: ${waiting} messages waiting, ${running} turns running, ${undelivered} replies to send, ${parked} parked`,
      `Kept: ${sizeInWords(kept.store.bytes)} in the database, ${sizeInWords(kept.media)} of files`,
    );
    return { text: lines.join('\n') };
  },
);

function duration(ms: number): string {
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${Math.floor(minutes / 1440)} days`;
}

export const help = commandOf('help', 'Show the commands', async ({ commands }) => {
  const lines = commands.map(({ name, aliases, description }) => {
    return `${[name, ...aliases].map((each) => `/${each}`).join(', ')}: ${description}`;
  });
  const more = 'To address another persona in one message, begin with its name: `luna: good morning`.';
  return { text: `${lines.join('\n')}\n\n${more}` };
});

export const whoami = commandOf(
  'whoami',
  'Show your id, this chat’s id and your rights',
  async ({ command: { room, sender, chat }, isOwner }) => {
    const { threadId } = roomParts(room);
    const topic = threadId === null ? '' : `, topic \`${threadId}\``;
    const who = `You are ${nameInWords(sender.name)} (\`${sender.id}\`).`;
    const where = `This chat is \`${chat.id}\`${topic}.`;
    return { text: `${who}\n${where}\nYou are ${isOwner ? 'an' : 'not an'} owner.` };
  },
);

const DAY_MS = 86_400_000;

/** Usage today and over thirty days, and the remaining limits; for an owner also of all chats. Counts may be estimates. */
export const usage = commandOf('usage', 'Show this chat’s usage and limits', async (call) => {
  const { store, clock, zone, isOwner } = call;
  const { chat } = call.command;
  const now = clock.now();
  const personas = await call.personas.list(chat.id);
  const since = (time: number) => store.usage({ chatId: chat.id, personId: null, since: time, now });
  const [{ personas: month }, today] = [await since(now - 30 * DAY_MS), await since(now)];
  const parts =
    month.length === 0
      ? ['This chat has used nothing in the last thirty days.']
      : [
          `Today (${zone.name}):\n${table(today.personas, personas)}`,
          `Last thirty days:\n${table(month, personas)}`,
        ];
  if (isOwner && chat.kind === 'direct') {
    const { tokens, cost } = today.all;
    parts.push(`All chats together today: ${tokens} tokens${costOf(cost)}`);
  }
  const limits = await limitsFor(
    call,
    personas,
    today.personas.map(({ personaId }) => personaId),
  );
  if (limits.length > 0) parts.push([`Left until midnight (${zone.name}):`, ...limits].join('\n'));
  return { text: parts.join('\n\n') };
});

function table(rows: Awaited<ReturnType<UsageStore['usage']>>['personas'], personas: Persona[]): string {
  if (rows.length === 0) return '- nothing';
  const lines = rows.map(({ personaId, turns, usage }) => {
    const { inputTokens, cachedTokens = 0, outputTokens, cost } = usage;
    const cached = cachedTokens === 0 ? '' : ` (${cachedTokens} of them from the server’s cache)`;
    const tokens = `${inputTokens} tokens read${cached}, ${outputTokens} written`;
    return `- ${personaName(personas, personaId)}: ${counted(turns, 'answer')}, ${tokens}${costOf(cost)}`;
  });
  return lines.join('\n');
}

function costOf(cost = 0): string {
  return cost === 0 ? '' : `, cost ${money(cost)}`;
}

function money(cost: number): string {
  return String(Number((cost / MILLION).toFixed(4)));
}

/** One line per daily limit; persona limits for the active persona and those with usage. */
async function limitsFor(call: CommandCall, personas: Persona[], used: PersonaId[]): Promise<string[]> {
  const { command, isOwner, dailyLimits } = call;
  const { chat, room, sender } = command;
  const lines: string[] = [];
  for (const personaId of new Set([chat.activePersona, ...used])) {
    const persona = personaName(personas, personaId);
    const whose = { day: 'all chats', chat: 'this chat', persona, person: 'you' };
    for (const standing of await dailyLimits.statuses({ room, personaId, personId: sender.id })) {
      const { scope } = standing;
      if (scope !== 'persona' && personaId !== chat.activePersona) continue;
      // Only owners see the usage of other chats.
      lines.push(`- ${whose[scope]}: ${leftOf(standing, scope !== 'day' || isOwner)}`);
    }
  }
  return lines;
}

function leftOf({ unit, used, most }: LimitStatus, isExact: boolean): string {
  const left = Math.max(0, most - used);
  if (!isExact) return `${most === 0 ? 0 : Math.floor((100 * left) / most)} % of the ${unit}`;
  return unit === 'tokens' ? `${left} of ${most} tokens` : `${money(left)} of ${money(most)} in money`;
}
