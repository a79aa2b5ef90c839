/** Items of an album and parts of a paste, shown as the one message that people see, if they were heard together. Pure. */
import { mostInPart, type Position, type StoredMessage } from '../../core/transcript.js';

/** `message`: as it is shown. `items`: as stored. */
export interface ShownMessage<M> {
  message: M;
  items: M[];
}
/** The position is known for messages that the persona has heard. */
type Placed = StoredMessage & { position?: Position };

/** Number of preceding messages searched for the earlier parts of a paste. */
const BETWEEN_PARTS = 10;

/** Groups neighbours, and the parts of a paste even with other messages in between. */
export function inAlbums<M extends Placed>(messages: readonly M[]): ShownMessage<M>[] {
  const groups: M[][] = [];
  for (const message of messages) {
    const isPart = message.album !== undefined && mostInPart(message.album) !== null;
    const near = groups.slice(isPart ? -BETWEEN_PARTS : -1);
    const same = near.findLast(([first]) => first !== undefined && isSameAlbum(first, message));
    if (same === undefined) groups.push([message]);
    else same.push(message);
  }
  return groups.map((items) => ({ message: asOne(items), items }));
}

/** Its captions first, then a line for each file, in order of arrival. */
function asOne<M extends Placed>(items: readonly M[]): M {
  const [first, ...others] = items;
  if (first === undefined) throw new Error('an album without items');
  if (others.length === 0) return first;
  const most = first.album === undefined ? null : mostInPart(first.album);
  if (most !== null) return { ...first, text: parts(items, most) };
  const captions = items.flatMap(({ words = '' }) => (words === '' ? [] : [words]));
  return {
    ...first,
    text: [...captions, ...items.map(withoutWords)].filter((line) => line !== '').join('\n'),
    words: captions.join('\n'),
    attachments: items.flatMap(({ attachments = [] }) => attachments),
    replyTo: items.find(({ replyTo }) => replyTo !== null)?.replyTo ?? null,
  };
}

/** A client cuts at the last character that fits, or at white space before it, which is lost. */
function parts(items: readonly StoredMessage[], most: number): string {
  return items.reduce((whole, { text }, n) => {
    const before = items[n - 1]?.text ?? '';
    const isWhole = n === 0 || before.length >= most - 1 || /\s$/.test(before) || /^\s/.test(text);
    return whole + (isWhole ? '' : ' ') + text;
  }, '');
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
