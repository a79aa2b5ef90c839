/**
 * `/archive`: copies the conversation into the archive folder. The window does not move; the conversation continues.
 */

import { code, counted } from '../quoting.js';
import { type Command, changesAlways } from './command.js';
import { activeHere } from './here.js';

export const archive: Command = {
  name: 'archive',
  aliases: [],
  description: 'Copy this conversation into the archive folder',
  // It writes a file to the operator's disk each time.
  changes: changesAlways,
  async run({ command }, { archives, windows }) {
    const { chatId, personaId } = activeHere(command);
    const copy = await windows.copy(command.room, personaId);
    if (!copy) return { text: 'There is no conversation here yet to archive.' };
    if (copy === 'too many') {
      return { text: 'This was copied too often within the last hour; please try again later.' };
    }
    const path = code(archives.shownPath(chatId, copy.file));
    if (copy.isOld) return { text: `Nothing was said since the last copy: ${path} holds all of it.` };
    return { text: `Copied ${counted(copy.messages, 'message')} to ${path}. The conversation goes on.` };
  },
};
