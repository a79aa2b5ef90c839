/**
 * Step 4 of the route: the items of an album are stored as the messages that they are on the platform, and shown to a
 * persona as the one message that people see. Pure.
 */
import type { StoredMessage } from '../../core/transcript.js';
import type { Position } from '../../core/view.js';

/** What of its place is known: of a message that the persona has heard, all. */
type Placed = StoredMessage & { position?: Position };

/**
 * Neighbours that are to be shown as one. Only what was heard together is: an item that comes later changes nothing of
 * what was shown before.
 */
export function albumsOf<M extends Placed>(messages: readonly M[]): M[][] {
  const groups: M[][] = [];
  for (const message of messages) {
    const last = groups.at(-1);
    if (last?.[0] !== undefined && isSameAlbum(last[0], message)) last.push(message);
    else groups.push([message]);
  }
  return groups;
}

/** Its captions first, then a line for each file, in the order in which they came. */
export function asOne<M extends Placed>(items: readonly M[]): M {
  const [first, ...others] = items;
  if (first === undefined) throw new Error('an album without items');
  if (others.length === 0) return first;
  const captions = items.flatMap(({ words = '' }) => (words === '' ? [] : [words]));
  return {
    ...first,
    text: [...captions, ...items.map(withoutWords)].filter((line) => line !== '').join('\n'),
    words: captions.join('\n'),
    attachments: items.flatMap(({ attachments = [] }) => attachments),
    replyTo: items.find(({ replyTo }) => replyTo !== null)?.replyTo ?? null,
  };
}

function isSameAlbum(one: Placed, other: Placed): boolean {
  return (
    one.album !== undefined &&
    one.album === other.album &&
    one.author.kind === 'person' &&
    other.author.kind === 'person' &&
    one.author.id === other.author.id &&
    one.turnId === other.turnId &&
    one.position?.heardAfter === other.position?.heardAfter &&
    one.forwardedFrom === other.forwardedFrom &&
    !one.edited &&
    !other.edited
  );
}

function withoutWords({ text, words = '' }: StoredMessage): string {
  if (words === '' || text === words) return words === '' ? text : '';
  return text.startsWith(`${words}\n`) ? text.slice(words.length + 1) : text;
}
