/** `/whoami`: the ids that an operator needs, and whether the sender is an owner. */
import { roomParts } from '../../core/ids.js';
import { nameInWords } from '../quoting.js';
import { type Command, changesNothing } from './command.js';

export const whoami: Command = {
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
