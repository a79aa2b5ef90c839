/** `coterie doctor --message`: where one message went, for each persona that heard it. */
import { Fault } from './core/errors.js';
import type { Fate } from './core/memory.js';
import { withTraces } from './store/sqlite/inspect.js';

/**
 * `telegram_123/45`: a chat's id and the platform's id of a message in it. One line each; throws Fault where there is
 * none.
 */
export async function whereItWent(database: string, wanted: string): Promise<string[]> {
  const slash = wanted.indexOf('/');
  if (slash < 0) {
    throw new Fault('configuration', `${wanted} should be CHAT_ID/MESSAGE_ID, like telegram_123/45`);
  }
  const ask = {
    chatId: wanted.slice(0, slash),
    wanted: { platformMessageId: wanted.slice(slash + 1) },
    most: 10,
  };
  const traces = await withTraces(database, (open) => open.trace(ask));
  if (traces.length === 0) {
    throw new Fault('configuration', `${wanted} is not in the store: it never came in, or was not let in`);
  }
  return traces.map(({ message, personaId, fate }) => {
    const at = new Date(message.sentAt).toISOString();
    const whose = personaId === '' ? 'nobody' : personaId;
    return `${wanted} of ${at}, for ${whose}: ${wordsFor(fate)}`;
  });
}

function wordsFor(fate: Fate): string {
  switch (fate.kind) {
    case 'waiting':
      return 'waits to be answered';
    case 'window':
      return `in the window${fate.flushed ? ', seen by a memory flush' : ''}`;
    case 'flushed':
      return 'behind the window, after a memory flush had seen it';
    case 'archived':
      return `behind the window, in the archive ${fate.file}; a memory flush of it is owed`;
    case 'overheard':
      return 'overheard: said to somebody else';
    case 'reset':
      return 'forgotten by /reset, or never shown';
  }
}
