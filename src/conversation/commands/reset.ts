/** `/reset`: permanently forgets the conversation with the active persona in this room. Memory stays. */
import { roomParts } from '../../core/ids.js';
import type { StoredCommand } from '../../core/receipt.js';
import { forgetCopies } from '../copies.js';
import { type Command, type CommandServices, changesAlways } from './command.js';

export const reset: Command = {
  name: 'reset',
  aliases: ['new'],
  description: 'Forget this conversation; memory stays',
  changes: changesAlways,
  async run({ command }, services) {
    const personaId = command.chat.activePersona;
    // What is being forgotten must not be written to memory or to another archive meanwhile.
    await services.windows.halt(command.room, personaId);
    await markArchives(command, services);
    // Once more when it is done (command-lane.ts); now, so that nothing stays where a crash comes between.
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
