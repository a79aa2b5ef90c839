/** A character card that somebody sent: how it is asked for, and the words between the room that finds it and `/persona`. */
import { z } from 'zod';
import type { ChatId, RoomId } from '../core/ids.js';

const CAPTION =
  /^[\u200b\u200e\u200f\u2060\ufeff\s]*(?:@\S+\s+)?[/\uff0f]personas?(?:@\S+)?\s+import(?:\s+([\s\S]*))?$/i;

/** `/persona import [NAME]`, the caption of a card. null: other words. */
export function importAsked(text: string): { name: string | null } | null {
  const [all, name = ''] = CAPTION.exec(text) ?? [];
  if (all === undefined) return null;
  return { name: name.trim().replace(/^["“„'«]|["”'»]$/g, '') || null };
}

/** The setting by which a room waits for a card of this person. */
export function awaitedCardKey(room: RoomId, senderId: ChatId): string {
  return `card.${room}.${senderId}`;
}

const SentCard = z.object({
  /** In the media folder. */
  file: z.string(),
  fileName: z.string(),
  name: z.string().nullable(),
  /** Of the platform. */
  messageId: z.string(),
});
export type SentCard = z.infer<typeof SentCard>;

export function sentCardIn(json: string): SentCard | null {
  try {
    return SentCard.parse(JSON.parse(json));
  } catch {
    return null;
  }
}
