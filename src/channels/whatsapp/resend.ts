/**
 * What we sent, for a peer whose phone could not decrypt it and asks for it again: the library then encrypts it anew.
 * Taken from memory, else from the store, by the key in the message's id.
 */
import type { proto, SocketConfig, WASocket } from '@whiskeysockets/baileys';
import type { Part } from '../../core/channel.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import type { Bounded } from '../kit/bounded.js';
import { readOutgoing } from '../kit/outgoing.js';
import { keyOf } from './own-ids.js';
import { contentOf, UPLOADS } from './send.js';

export interface Resending {
  sent: Bounded<string, proto.IMessage>;
  /** What was sent with this key. */
  sentPart(key: string): Promise<Part | null>;
  log: Log;
  signal: AbortSignal;
}

/** Never rejects: a message that is not found is not sent again. */
export function resending(
  { sent, sentPart, log, signal }: Resending,
  mark: string,
  socket: () => WASocket,
): SocketConfig['getMessage'] {
  async function made(id: string): Promise<proto.IMessage | undefined> {
    const key = keyOf(mark, id);
    const part = key === null ? null : await sentPart(key);
    if (part === null) return undefined;
    const file = part.file && (await readOutgoing(part.file, UPLOADS, signal));
    if (file && file.kind !== 'read') return undefined;
    return contentOf(log, socket(), part, file?.bytes ?? null);
  }

  return async ({ id }) => {
    if (!id) return undefined;
    try {
      return sent.get(id) ?? (await made(id));
    } catch (error) {
      log.debug({ channel: 'whatsapp', reason: describe(error) }, 'a message could not be made again');
      return undefined;
    }
  };
}
