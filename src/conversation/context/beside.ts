/**
 * Step 4 of the route: people send a picture and ask about it in the next message, and in a group only that message is
 * for us. What its sender sent just before or behind it is looked at, too. Pure.
 */
import type { StoredMessage } from '../../core/transcript.js';

/** How far apart a file and the question about it may be. */
const WITHIN_MS = 2 * 60_000;
/** As many as an album has. */
const MOST_FILES = 10;

/** The messages with files, oldest first, that belong to what is answered; `around` is what was heard, oldest first. */
export function withFilesBeside(
  around: readonly StoredMessage[],
  answered: readonly StoredMessage[],
): StoredMessage[] {
  const found: StoredMessage[] = [];
  let files = 0;
  for (const message of [...around].reverse()) {
    const { attachments = [] } = message;
    if (attachments.length === 0 || message.turnId !== null || message.quiet) continue;
    if (!answered.some((asked) => mayMean(asked, message))) continue;
    files += attachments.length;
    if (files > MOST_FILES && found.length > 0) break;
    found.unshift(message);
  }
  return found;
}

/** Whoever replies to a message says by that what they mean. */
function mayMean(asked: StoredMessage, { author, sentAt }: StoredMessage): boolean {
  return (
    asked.replyTo === null &&
    asked.author.kind === 'person' &&
    author.kind === 'person' &&
    asked.author.id === author.id &&
    Math.abs(asked.sentAt - sentAt) <= WITHIN_MS
  );
}
