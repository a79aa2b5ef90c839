/** `/status`: what is running and how it is, without anything secret. */
import { personaName } from '../../core/persona.js';
import { presentIn } from '../presence.js';
import { type Command, changesNothing } from './command.js';

export const status: Command = {
  name: 'status',
  aliases: [],
  description: 'Show how I am doing',
  changes: changesNothing,
  async run({ command, isOwner }, parts) {
    const { chat, room } = command;
    const now = parts.clock.now();
    const personas = await parts.personas.list(chat.id);
    const persona = personas.find(({ id }) => id === chat.activePersona);
    const others = presentIn(chat, personas)
      .slice(1)
      .map((id) => personaName(personas, id));
    const channel = parts.channels.get(chat.channel)?.status();
    const last = await parts.store.lastReply(room);
    const lines = [
      `coterie ${parts.facts.version}, running for ${duration(now - parts.facts.startedAt)}`,
      `Persona: ${persona?.name ?? chat.activePersona}${others.length === 0 ? '' : ` (also here: ${others.join(', ')})`}`,
      `Model: ${persona?.model ?? parts.facts.model}`,
      `Channel: ${chat.channel}, ${channel?.connected ? 'connected' : 'not connected'}`,
      `Last reply here: ${last ? parts.zone.time(last.at) : 'none yet'}`,
    ];
    const { vectors } = parts.recall.status();
    if (vectors.state === 'failing') {
      lines.push(
        `Memory search: by keywords only since ${parts.zone.time(vectors.since)}, for the embedding server is away`,
      );
    }
    if (isOwner) {
      const { waiting, running, undelivered, parked } = await parts.store.census();
      const { indexed, waiting: unindexed, vectors: by, vectorsWaiting } = parts.recall.status();
      const meaning =
        by.state === 'off' ? 'keywords' : `keywords and meaning, ${vectorsWaiting} vectors missing`;
      lines.push(`Memory search: ${meaning}; ${indexed} pieces indexed, ${unindexed} waiting`);
      lines.push(
        `All chats: ${waiting} messages waiting, ${running} turns running, ${undelivered} replies to send, ${parked} parked`,
      );
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
