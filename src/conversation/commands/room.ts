/** Commands about a conversation: `/start` (which Telegram sends first), `/reset`, `/archive`, `/stop`, `/voice`. */
import { DEFAULT_PERSONA, roomParts } from '../../core/ids.js';
import type { StoredCommand } from '../../core/receipt.js';
import { greetingFor, greetingOf } from '../participants.js';
import { code, counted, nameInWords } from '../quoting.js';
import { forgetCopies } from '../services.js';
import {
  activeHere,
  type ChatCommand,
  type CommandAnswer,
  type CommandCall,
  type CommandServices,
  changesAlways,
  changesNothing,
  NOT_CHECKED,
} from './command.js';

const HELP = '/help shows what else I can do.';

export const start: ChatCommand = {
  name: 'start',
  aliases: [],
  description: 'Say hello',
  changes: changesNothing,
  async run({ command: { chat, room } }, services) {
    const personas = await services.personas.list(chat.id);
    const persona =
      personas.find(({ id }) => id === chat.activePersona) ??
      personas.find(({ id }) => id === DEFAULT_PERSONA);
    if (!persona) return { text: `Hello. Just write to me; ${HELP}` };
    const words = greetingOf(chat, persona);
    if (words === '') return { text: `Hello, I am ${nameInWords(persona.name)}. Just write to me; ${HELP}` };
    const first = await greetingFor(services, chat, room, persona, personas);
    return { text: `${words}\n\n${HELP}`, effects: first ? [{ kind: 'greet', ...first }] : [] };
  },
};

/** Permanently forgets the conversation with the active persona in this room. Memory stays. */
export const reset: ChatCommand = {
  name: 'reset',
  aliases: ['new'],
  description: 'Forget this conversation; memory stays',
  changes: changesAlways,
  async run({ command }, services) {
    const personaId = command.chat.activePersona;
    // Meanwhile, nothing of this conversation may be written to memory or an archive.
    await services.windows.halt(command.room, personaId);
    await markArchives(command, services);
    // Repeated after the command (receive/commands.ts); done here too, in case a crash comes between.
    await forgetCopies(services, command.chat.id, personaId).catch((error) => {
      services.log.error({ err: error, chat: command.chat.id }, 'records of turns could not be removed yet');
    });
    return {
      text: 'Conversation cleared. Principles and per-persona memory are unchanged.',
      effects: [{ kind: 'reset', room: command.room, personaId, upTo: command.afterMessage }],
    };
  },
};

/** Archive files outlive the store, so they are marked: no index may include them again. */
async function markArchives(
  { chat, room }: StoredCommand,
  { archives, log }: CommandServices,
): Promise<void> {
  const { threadId } = roomParts(room);
  const all = await archives.list(chat.id, chat.activePersona).catch((error) => {
    log.error(
      { err: error, chat: chat.id },
      'the archives of a reset conversation could not be read; none is marked',
    );
    return [];
  });
  for (const { file } of all.filter((each) => each.threadId === threadId && !each.reset)) {
    await archives.mark(chat.id, file, 'reset').catch((error) => {
      const path = archives.shownPath(chat.id, file);
      log.error(
        { err: error, path },
        'an archive could not be marked as reset; remove it, or set `reset: true` in it',
      );
    });
  }
}

/** Copies the conversation to the archive folder; the conversation continues. */
export const archive: ChatCommand = {
  name: 'archive',
  aliases: [],
  description: 'Copy this conversation into the archive folder',
  // Each call writes a file to the operator's disk.
  changes: changesAlways,
  async run({ command }, { archives, windows }) {
    const { chatId, personaId } = activeHere(command);
    const copy = await windows.copy(command.room, personaId);
    if (!copy) return { text: 'There is no conversation here to archive yet.' };
    if (copy === 'too many') {
      return { text: 'This conversation was copied too often within the last hour. Please try again later.' };
    }
    const path = code(archives.shownPath(chatId, copy.file));
    if (copy.isOld) return { text: `Nothing was said since the last copy, ${path}.` };
    return { text: `Copied ${counted(copy.messages, 'message')} to ${path}. The conversation goes on.` };
  },
};

/** Aborts the running turn (in groups: its asker, or people with rights). In direct chats, drops waiting messages. */
export const stop: ChatCommand = {
  name: 'stop',
  aliases: [],
  description: 'Stop the answer that is being written',
  // Permission is checked below, because the person who asked needs no rights.
  changes: changesNothing,
  async run({ command, mayChange }, { store }) {
    const running = (await store.running(command.room)) ?? (await store.suspended(command.room));
    if (!running) {
      const { chat, room, afterMessage } = command;
      if (chat.kind === 'group' || !(await store.waits(room, afterMessage))) {
        return { text: 'There is nothing to stop.' };
      }
      return { text: 'Stopped.', effects: [{ kind: 'suppress', room, upTo: afterMessage }] };
    }
    if (command.chat.kind === 'group' && !running.askers.includes(command.sender.id)) {
      const permission = await mayChange();
      if (permission === 'unknown') return { text: NOT_CHECKED };
      if (permission === 'no') {
        return { text: 'Only the person who asked, an administrator or an owner can stop this answer.' };
      }
    }
    return { text: 'Stopped.', effects: [{ kind: 'stop', room: command.room, turnId: running.turnId }] };
  },
};

const CHOICES = ['on', 'off'] as const;

export const voice: ChatCommand = {
  name: 'voice',
  aliases: [],
  description: 'Turn voice notes on or off',
  verbs: [
    { name: 'on', description: 'My replies come as voice notes, too' },
    { name: 'off', description: 'My replies are text only' },
  ],
  ofChat: true,
  changes: (argument) => argument.trim() !== '',
  audited: (argument) => CHOICES.find((each) => each === argument.trim().toLowerCase()) ?? '',
  async run({ command }, services) {
    const argument = command.argument.trim().toLowerCase();
    const impossible = whyNot(command, services);
    if (argument === '') return { text: impossible ?? howItIs(command, services) };
    const chosen = CHOICES.find((each) => each === argument);
    if (chosen === undefined)
      return { text: 'Use /voice on or /voice off. /voice shows the current setting.' };
    if (chosen === 'on' && impossible !== null) return { text: impossible };
    const text = chosen === 'on' ? ON : OFF;
    return { text, effects: [{ kind: 'voice', chatId: command.chat.id, voice: chosen }] };
  },
};

type Asked = CommandCall['command'];

const ON = 'My replies here now come as voice notes, too. Long ones stay text only. /voice off turns it off.';
const OFF = 'My replies here are now text only. /voice on turns voice on.';

function whyNot({ chat }: Asked, { speech, channels }: CommandServices): CommandAnswer['text'] | null {
  if (!channels.get(chat.channel)?.voiceNotes) return 'Voice notes are not available on this channel.';
  if (speech === null) return 'I have no voice yet. The person who runs me can configure one.';
  return null;
}

function howItIs({ chat }: Asked, { speech }: CommandServices): string {
  if (chat.voice === 'on')
    return 'Voice is on: my replies here come as voice notes, too. /voice off turns it off.';
  if (chat.voice === undefined && speech?.whenSpokenTo)
    return 'I answer voice notes with voice notes, too. /voice on: always; /voice off: never.';
  return 'Voice is off: my replies here are text only. /voice on turns it on.';
}
