/**
 * Within step 1 of the route: a client cuts a text that is too long for one message into several, and sends them one by
 * one. They get an album of their own, so that they are waited for, are for the same persona, and are shown as one.
 */
import type { Receipt } from '../../core/receipt.js';
import { pasteAlbum } from '../../core/transcript.js';

/** Until the next part comes. A platform's own times may be whole seconds. */
const MOST_APART_MS = 2_000;
/** Clients cut where a word ends: a part has at least so much of what fits. */
const LEAST_OF_A_PART = 0.9;

interface Begun {
  album: string;
  at: number;
}

export type Pastes = ReturnType<typeof createPastes>;

export function createPastes() {
  /** By room and person: the album that their next message may go on with. */
  const begun = new Map<string, Begun>();

  return {
    /** `fits`: how many characters clients of this platform send in one message. */
    noted(
      receipt: Receipt,
      { now, fits = [] }: { now: number; fits?: readonly number[] | undefined },
    ): Receipt {
      if (receipt.kind !== 'message' || fits.length === 0) return receipt;
      const { chat, threadId, sender, platformMessageId, text } = receipt;
      const at = receipt.receivedAt ?? now;
      for (const [key, { at: before }] of begun) if (at - before > MOST_APART_MS) begun.delete(key);
      const whose = JSON.stringify([chat.id, threadId, sender.id]);
      const last = begun.get(whose);
      begun.delete(whose);
      const { album, attachments, forwardedFrom, replyTo } = receipt;
      if (album !== undefined || attachments !== undefined || forwardedFrom !== undefined) return receipt;
      const limit = fits.find((most) => text.length <= most && text.length >= most * LEAST_OF_A_PART);
      const goesOn = last !== undefined && replyTo === null;
      if (limit === undefined && !goesOn) return receipt;
      const paste = goesOn ? last.album : pasteAlbum(limit ?? 0, platformMessageId);
      if (limit !== undefined) begun.set(whose, { album: paste, at });
      return { ...receipt, album: paste };
    },
  };
}
