/** Commands about a conversation: `/start` (which Telegram sends first), `/reset`, `/archive`, `/stop`, `/voice`. */
import { DEFAULT_PERSONA, roomParts } from '../../core/ids.js';
import type { CommandEffect } from '../../core/store.js';
import { greetingFor, greetingOf } from '../greeting.js';
import { code, counted, nameInWords } from '../quoting.js';
import { activeHere, type ChatCommand, type CommandCall, commandOf, NOT_CHECKED } from './command.js';
import { forgetCopies } from './memory-forget.js';

const HELP = '/help shows what else I can do.';

export const start = commandOf('start', 'Say hello', async (call) => {
  const { chat, room } = call.command;
  const personas = await call.personas.list(chat.id);
  const persona =
    personas.find(({ id }) => id === chat.activePersona) ?? personas.find(({ id }) => id === DEFAULT_PERSONA);
  if (!persona) return { text: `Hello. Just write to me; ${HELP}` };
  const words = await greetingOf(call, chat, persona);
  if (words === '') return { text: `Hello, I am ${nameInWords(persona.name)}. Just write to me; ${HELP}` };
  const first = await greetingFor(call, chat, room, persona, personas);
  const effects: CommandEffect[] = first ? [{ kind: 'greet', ...first, text: words }] : [];
  return { text: `${words}\n\n${HELP}`, greets: persona, effects };
});

export const reset = commandOf(
  'reset',
  'Forget this conversation; memory stays',
  async (call) => {
    const { windows, log } = call;
    const { room, chat, afterMessage: upTo } = call.command;
    const personaId = chat.activePersona;
    // Meanwhile, nothing of this conversation may be written to memory or an archive.
    await windows.halt(room, personaId);
    await markArchives(call);
    // Repeated after the command (receive/commands.ts); done here too, in case a crash comes between.
    await forgetCopies(call, chat.id, personaId).catch((error) => {
      log.error({ err: error, chat: chat.id }, 'records of turns could not be removed yet');
    });
    const text = 'Conversation cleared. Principles and per-persona memory are unchanged.';
    return { text, effects: [{ kind: 'reset', room, personaId, upTo }] };
  },
  {
    aliases: ['new'],
    changes: () => true,
  },
);

/** Archive files outlive the store, so they are marked: no index may include them again. */
async function markArchives({ command, archives, log }: CommandCall): Promise<void> {
  const { chat, room } = command;
  const { threadId } = roomParts(room);
  const all = await archives.list(chat.id, chat.activePersona).catch((error) => {
    const fields = { err: error, chat: chat.id };
    log.error(fields, 'the archives of a reset conversation could not be read; none is marked');
    return [];
  });
  for (const { file } of all.filter((each) => each.threadId === threadId && !each.reset)) {
    await archives.mark(chat.id, file, 'reset').catch((error) => {
      const fields = { err: error, path: archives.shownPath(chat.id, file) };
      log.error(fields, 'an archive could not be marked as reset; remove it, or set `reset: true` in it');
    });
  }
}

export const archive = commandOf(
  'archive',
  'Copy this conversation into the archive folder',
  async ({ command, archives, windows }) => {
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
  {
    // Each call writes a file to the operator's disk.
    changes: () => true,
  },
);

/** Aborts the running turn (in groups: its asker, or people with rights). In direct chats, drops waiting messages. */
export const stop = commandOf(
  'stop',
  'Stop the answer that is being written',
  // Not marked as changing: the person who asked needs no rights, so permission is checked here.
  async ({ command, mayChange, store }) => {
    const { chat, room, sender, afterMessage } = command;
    const { running, suspended, waits } = await store.roomNow(room);
    const turn = running ?? suspended;
    if (!turn) {
      if (chat.kind === 'group' || waits === null || waits > afterMessage) {
        return { text: 'There is nothing to stop.' };
      }
      return { text: 'Stopped.', effects: [{ kind: 'suppress', room, upTo: afterMessage }] };
    }
    if (chat.kind === 'group' && !turn.askers.includes(sender.id)) {
      const permission = await mayChange();
      if (permission === 'unknown') return { text: NOT_CHECKED };
      if (permission === 'no') {
        return { text: 'Only the person who asked, an administrator or an owner can stop this answer.' };
      }
    }
    return { text: 'Stopped.', effects: [{ kind: 'stop', room, turnId: turn.turnId }] };
  },
);

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
  audited: (argument) => /^\s*(on|off)\s*$/i.exec(argument)?.[1]?.toLowerCase() ?? '',
  async run(call) {
    const { chat, argument } = call.command;
    const chosen = argument.trim().toLowerCase();
    let impossible = call.speech === null ? NO_VOICE : null;
    if (!call.channels.get(chat.channel)?.voiceNotes) impossible = NO_VOICE_NOTES;
    if (chosen === '') return { text: impossible ?? howItIs(call) };
    if (chosen !== 'on' && chosen !== 'off')
      return { text: 'Use /voice on or /voice off. /voice shows the current setting.' };
    if (chosen === 'on' && impossible !== null) return { text: impossible };
    const text = chosen === 'on' ? ON : OFF;
    return { text, effects: [{ kind: 'voice', chatId: chat.id, voice: chosen }] };
  },
};

const ON = 'My replies here now come as voice notes, too. Long ones stay text only. /voice off turns it off.';
const OFF = 'My replies here are now text only. /voice on turns voice on.';

const NO_VOICE = 'I have no voice yet. The person who runs me can configure one.';
const NO_VOICE_NOTES = 'Voice notes are not available on this channel.';

function howItIs({ command: { chat }, speech }: CommandCall): string {
  if (chat.voice === 'on')
    return 'Voice is on: my replies here come as voice notes, too. /voice off turns it off.';
  if (chat.voice === undefined && speech?.whenSpokenTo)
    return 'I answer voice notes with voice notes, too. /voice on: always; /voice off: never.';
  return 'Voice is off: my replies here are text only. /voice on turns it on.';
}
