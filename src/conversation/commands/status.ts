/** `/status`, `/whoami`, `/help`. */
import { sizeInWords } from '../../core/cut.js';
import { roomParts } from '../../core/ids.js';
import { personaName } from '../../core/persona.js';
import { presentIn } from '../participants.js';
import { nameInWords } from '../quoting.js';
import { type ChatCommand, changesNothing } from './command.js';

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

// `/help`: every command with one line.

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

// `/whoami`: the ids that an operator needs, and whether the sender is an owner.

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
