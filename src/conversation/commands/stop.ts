/**
 * `/stop`: aborts the running turn at once. In groups only whoever asked, or may change things, may stop an answer. In
 * direct chats it also drops messages that are still being transcribed or have not had their turn yet.
 */
import { type Command, changesNothing, NOT_CHECKED } from './command.js';

export const stop: Command = {
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
        return { text: 'Only whoever asked, an administrator or an owner can stop this answer.' };
      }
    }
    return { text: 'Stopped.', effects: [{ kind: 'stop', room: command.room, turnId: running.turnId }] };
  },
};
