/** After `coterie import-chat --propose`: the persona is told of the history, and proposes in the chat what to remember of it. */
import { tell } from './command.js';
import type { Config } from './config.js';
import { systemClock } from './core/clock.js';
import type { ChatId } from './core/ids.js';
import type { Log } from './core/log.js';
import type { Persona } from './core/persona.js';
import { HISTORY_IMPORTED } from './core/receipt.js';
import { openStore } from './parts.js';

const PROPOSE = `A history of this chat from another program was imported into your archives. Look into it with a few searches: who these
people are, what they like, what was promised, what you were to each other. Then propose at most five lines that are worth remembering, each
with the date of what it rests on, and ask which of them you should keep. You cannot change your memory now; a person decides.`;

/** Once per import. The persona only searches in that turn (rooms/answer.ts), and what it finds is somebody else's words. */
export async function askToPropose(
  config: Config,
  log: Log,
  chatId: ChatId,
  { id: personaId, name }: Persona,
  importId: string,
): Promise<void> {
  const store = await openStore(config, log);
  try {
    if ((await store.chat(chatId)) === null)
      return tell(`Nobody has spoken in ${chatId} yet, so ${name} proposes nothing there.`);
    const at = systemClock.now();
    const id = `history:${importId}`;
    const event = {
      kind: 'event',
      id,
      room: chatId,
      about: HISTORY_IMPORTED,
      text: PROPOSE,
      personaId,
      at,
    } as const;
    const receipts = [{ ...event, tainted: true as const }];
    await store.receive({ channel: 'inside', account: 'inside', now: at, receipts });
    tell(`${name} proposes in the chat which lines to remember, as soon as the gateway runs.`);
  } finally {
    await store.close();
  }
}
