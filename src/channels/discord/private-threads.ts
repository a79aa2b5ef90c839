/**
 * Private threads that are stored as threads of their channel, from versions that did not tell them apart: Discord is
 * asked once what each stored thread is, and of those with members of their own it is said that they are chats.
 */

import type { ChannelState } from '../../core/channel.js';
import { describe } from '../../core/errors.js';
import type { InboundApart } from '../../core/message.js';
import type { Base } from './api.js';
import type { Room } from './catch-up.js';
import type { Directory } from './directory.js';
import { CODE, failureOf } from './failure.js';
import { persistently } from './lookup.js';
import type { Queue } from './queue.js';
import { isSnowflake } from './snowflake.js';

/** In the channel's state: every stored thread was asked about. */
const ASKED = 'threads';

interface Parts extends Base {
  directory: Directory;
  queue: Pick<Queue, 'addMissed'>;
  state: ChannelState;
  newest(): Promise<Room[]>;
}

/** Never rejects; what could not be found out is asked again at the next start. */
export async function tellPrivateThreads(parts: Parts, signal: AbortSignal): Promise<void> {
  const { state, queue, log } = parts;
  try {
    if ((await state.get([ASKED])).has(ASKED)) return;
    const events: InboundApart[] = [];
    let isAllKnown = true;
    for (const { address, threadId } of await parts.newest()) {
      if (threadId === null || !isSnowflake(threadId)) continue;
      const is = await kindOf(parts, address, threadId, signal);
      if (is === 'private') events.push({ kind: 'apart', from: address, threadId, to: threadId });
      isAllKnown &&= is !== 'unknown';
    }
    await queue.addMissed(events);
    if (isAllKnown && !signal.aborted) await state.set(new Map([[ASKED, 'asked']]));
  } catch (error) {
    const reason = describe(error);
    log.warn(
      { channel: 'discord', reason },
      'it is not known which stored threads are private; asking again at the next start',
    );
  }
}

/** `gone`: there is none any more. */
async function kindOf(
  parts: Parts,
  channel: string,
  thread: string,
  signal: AbortSignal,
): Promise<'private' | 'public' | 'gone' | 'unknown'> {
  const { api, directory } = parts;
  let is: 'private' | 'gone' | 'unknown' = 'unknown';
  await persistently(parts, signal, 'a thread could not be looked up', async () => {
    if (directory.place(thread) !== null) return;
    try {
      directory.noteChannel(await api.get(`/channels/${thread}`, signal));
    } catch (error) {
      const { code } = failureOf(error);
      if (code === CODE.unknownChannel) is = 'gone';
      else if (code === CODE.missingAccess) {
        // Whoever may see a channel may see its threads, but for private ones.
        await api.get(`/channels/${channel}`, signal);
        is = 'private';
      } else throw error;
    }
  });
  const place = directory.place(thread);
  if (place === null) return is;
  return place.threadId === null ? 'private' : 'public';
}
