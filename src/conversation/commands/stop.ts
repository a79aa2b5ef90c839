/**
 * `/stop`: aborts the turn in flight at once. In groups whoever asked may stop the answer, and who may change. Between two
 * people there is more to stop: what is still being listened to, or has not had its turn yet.
 */
import { type Command, changesNothing } from './command.js';

export const stop: Command = {
  name: 'stop',
  aliases: [],
  description: 'Stop the answer that is being written',
  // Who may is decided below: the one who asked needs no rights.
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
    if (
      command.chat.kind === 'group' &&
      !running.askers.includes(command.sender.id) &&
      !(await mayChange())
    ) {
      return { text: 'Only whoever asked, an administrator or an owner can stop this answer.' };
    }
    return { text: 'Stopped.', effects: [{ kind: 'stop', room: command.room, turnId: running.turnId }] };
  },
};
