/** Step 1 of the route: the parts of a long text that a client split get an album, so that they are answered as one. */
import type { Receipt } from '../../core/receipt.js';
import { pasteAlbum } from '../../core/transcript.js';

/** Maximum time between parts of a paste. Platform times may be whole seconds. */
const MOST_APART_MS = 2_000;
/** Clients cut at word ends, so a part has at least this share of the limit. */
export const LEAST_OF_A_PART = 0.9;

/** `fits`: maximum characters per message in a platform's clients. */
export function createPastes() {
  /** By room and person: the album that their next message may continue. */
  const begun = new Map<string, { album: string; at: number }>();

  return {
    /** Empty if no message continues another. */
    begun,
    noted(receipt: Receipt, now: number, fits: readonly number[] = []): Receipt {
      if (receipt.kind !== 'message' || fits.length === 0) return receipt;
      const { chat, threadId, sender, platformMessageId, text } = receipt;
      const at = receipt.receivedAt ?? now;
      for (const [key, { at: before }] of begun) if (at - before > MOST_APART_MS) begun.delete(key);
      const whose = JSON.stringify([chat.id, threadId, sender.id]);
      const last = begun.get(whose);
      begun.delete(whose);
      const { album, attachments, forwardedFrom, replyTo } = receipt;
      if (album !== undefined || attachments !== undefined || forwardedFrom !== undefined) return receipt;
      const { length } = text;
      const limit = fits.find((most) => length <= most && length >= most * LEAST_OF_A_PART);
      const goesOn = last !== undefined && replyTo === null;
      if (limit === undefined && !goesOn) return receipt;
      const paste = goesOn ? last.album : pasteAlbum(limit ?? 0, platformMessageId);
      if (limit !== undefined) begun.set(whose, { album: paste, at });
      return { ...receipt, album: paste };
    },
  };
}
