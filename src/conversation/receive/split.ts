/** Step 1 of the route: a thread is a chat of its own. That gets an archive of its messages, and the old chat forgets them. */
import { roomId } from '../../core/ids.js';
import type { InboundApart } from '../../core/message.js';
import { personaName } from '../../core/persona.js';
import { BEGINNING, END } from '../../core/position.js';
import type { Receipt } from '../../core/receipt.js';
import { identifyChat } from '../access.js';
import { forgetCopies } from '../commands/memory-forget.js';
import { copySpan } from '../compaction/compact.js';
import type { Services } from '../services.js';

const MOST_PERSONAS = 100;

/** null if nothing was ever said in it as a thread. */
export async function splitReceipt(
  services: Services,
  channel: string,
  { from, threadId, to }: InboundApart,
): Promise<Receipt | null> {
  const { store, archives, clock, log, windows } = services;
  const { id: chatId } = await identifyChat(services, channel, { address: from });
  const { id: ownId } = await identifyChat(services, channel, { address: to });
  const room = roomId(chatId, threadId);
  const chat = await store.chat(chatId);
  if (chat === null || ownId === chatId) return null;
  const personas = await services.personas.list(chatId);
  const views = await store.heardViews({ room, personaId: '' }, MOST_PERSONAS);
  for (const { personaId } of views.filter((view) => view.room === room)) {
    // Nothing of it may reach the old chat's memory meanwhile.
    await windows.halt(room, personaId);
    for (const { file, threadId: of, reset } of await archives.list(chatId, personaId)) {
      if (of === threadId && !reset) await archives.mark(chatId, file, 'reset');
    }
    const span = { room, personaId, after: BEGINNING, upTo: END };
    if ((await store.span({ ...span, limit: 1, overheard: 0 })).messages.length === 0) continue;
    const reason = 'it had counted as a thread of another chat';
    const by = { personaId, personaName: personaName(personas, personaId) };
    const head = { chatId: ownId, threadId: null, ...by, reason, flushed: true, at: clock.now() };
    const name = await archives.newName(head);
    await copySpan(services, { chat, room, personaId, personas }, span, name, head);
  }
  await forgetCopies(services, chatId, null);
  log.info({ room, chat: ownId }, 'a thread became a chat of its own; its messages left the old chat');
  return { kind: 'apart', room };
}
