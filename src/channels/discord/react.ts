/** The bot's reaction to a message. It is the account's, whichever persona it comes from: webhooks have none. */
import type { Recipient, SendResult } from '../../core/channel.js';
import type { Base } from './api.js';
import { failureOf, sendResult } from './failure.js';
import { roomOf } from './outbound.js';
import { isSnowflake } from './snowflake.js';

/** Never throws. */
export async function react(
  { api }: Base,
  to: Recipient,
  id: string,
  emoji: string,
  signal: AbortSignal,
): Promise<SendResult> {
  const room = roomOf(to);
  if (!isSnowflake(room) || !isSnowflake(id)) {
    return { kind: 'refused', reason: `Discord has no message ${id} in a channel ${room}` };
  }
  try {
    const path = `/channels/${room}/messages/${id}/reactions/${encodeURIComponent(emoji)}/@me`;
    await api.call({ method: 'PUT', path }, signal);
    return { kind: 'sent', platformMessageId: id };
  } catch (error) {
    return sendResult(failureOf(error));
  }
}
