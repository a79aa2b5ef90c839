/** Step 1 of the route: people and groups without access. In a flood, the log names the first few and then counts, one line a minute. */
import { LRUCache } from 'lru-cache';
import type { Announcement } from '../../core/access.js';
import type { Post } from '../../core/channel.js';
import { type ChatId, platformId } from '../../core/ids.js';
import type { InboundMessage } from '../../core/message.js';
import type { AccessCheck } from '../access.js';
import { NAME_CHARS, pairing } from '../commands/owners.js';
import { withButtons, withNumbers } from '../deliver/reply.js';
import { oneLine, code as quoted } from '../quoting.js';
import { ownerChats } from '../rights.js';
import type { ChatPlace, Services } from '../services.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
/** A sender is answered once an hour; per channel, `most` codes may be pending and `mostPerHour` are given per hour. */
const CODES = { answerEveryMs: HOUR_MS, most: 3, mostPerHour: 10 };
/** Groups awaiting approval per channel, each kept for this long after its last mention. */
const GROUPS = { keepMs: 7 * 24 * HOUR_MS, most: 50 };
/** Maximum number of ids remembered per kind, and named per log line. */
const MOST_KNOWN = 1_000;
const MOST_NAMED = 10;
/** Number of people or groups that are named before they are only counted. */
const AT_ONCE = 10;

const WHY = { pair: 'unknown sender', unlisted: 'unlisted group', 'stay-out': 'closed' } as const;

/** Logs ids that were only counted. */
type Sum = (ids: ChatId[], count: string) => void;

interface Tally {
  /** How many may still be named. */
  spare: number;
  counted: Set<ChatId>;
  sum: Sum;
  cancel(): void;
}

function logCount({ counted, sum }: Tally): void {
  const count = counted.size < MOST_KNOWN ? String(counted.size) : `${MOST_KNOWN} or more`;
  if (counted.size > 0) sum([...counted].slice(0, MOST_NAMED), count);
  counted.clear();
}

export class Rejections {
  private readonly keptOutBefore = new LRUCache<ChatId, true>({ max: MOST_KNOWN });
  /** By kind and channel. */
  private readonly tallies = new Map<string, Tally>();
  private stopped = false;

  constructor(private readonly services: Services) {}

  async reject(channel: string, message: InboundMessage, { entry, chatId, senderId }: AccessCheck) {
    if (entry === 'pair') await this.offerPairing(channel, message, chatId, senderId);
    else if (entry === 'unlisted') await this.noteGroup(channel, message, chatId);
    else this.keepOut(channel, chatId, senderId, message.sender.name);
    return WHY[entry === 'enter' ? 'stay-out' : entry];
  }

  stop(): void {
    this.stopped = true;
    for (const tally of this.tallies.values()) {
      tally.cancel();
      logCount(tally);
    }
  }

  /** Whether it gets a line of its own. Otherwise it is counted, and `sum` logs the count within a minute. */
  private mayName(key: string, id: ChatId, atOnce: number, sum: Sum): boolean {
    const known = this.tallies.get(key);
    const tally: Tally = known ?? { spare: atOnce, counted: new Set(), sum, cancel: () => {} };
    if (!known) {
      this.tallies.set(key, tally);
      this.endMinute(key, tally);
    }
    if (tally.spare === 0 && tally.counted.size < MOST_KNOWN) tally.counted.add(id);
    if (tally.spare === 0) return false;
    tally.spare--;
    return true;
  }

  /** The tally ends after a minute in which nothing was counted. */
  private endMinute(key: string, tally: Tally): void {
    if (this.stopped) return;
    tally.cancel = this.services.clock.after(MINUTE_MS, () => {
      if (tally.counted.size === 0) this.tallies.delete(key);
      else this.endMinute(key, tally);
      logCount(tally);
    });
  }

  /** Somebody may not talk here and is told nothing. Named once per sender. */
  private keepOut(channel: string, chat: ChatId, sender: ChatId, name: string): void {
    const { log } = this.services;
    if (this.keptOutBefore.has(sender)) return;
    this.keptOutBefore.set(sender, true);
    const sum: Sum = (senders, count) =>
      log.info({ channel, senders }, `discarded messages of ${count} unapproved senders`);
    if (!this.mayName(`kept out ${channel}`, sender, AT_ONCE, sum)) return;
    const fields = { chat, sender, name: oneLine(name, NAME_CHARS) };
    log.info(fields, 'discarded a message of an unapproved sender');
  }

  /** An unknown sender got no code because the channel's limit is reached. Nothing about them is kept. */
  private noCode(channel: string, sender: ChatId): void {
    const say = (senders: string) =>
      this.services.log.warn(
        { channel, senders },
        `unknown senders turned away without a code: ${senders}; a channel gives only so many, at once and an hour (coterie pair list)`,
      );
    if (this.mayName(`no code ${channel}`, sender, 1, (_, count) => say(count))) say('1');
  }

  /** Gives an unknown sender a pairing code for the operator, and asks the owners whether to let them in. */
  private async offerPairing(channel: string, message: InboundMessage, chatId: ChatId, senderId: ChatId) {
    const { store, clock, labelOf, newPairingCode, deliver, log } = this.services;
    const now = clock.now();
    const ask = { channel, senderId, now, ...CODES };
    // Checked before anything is prepared: in a flood, hardly anybody is answered.
    const may = await store.requestPairing(ask, null);
    if (may === 'full') this.noCode(channel, senderId);
    if (may !== 'asked') return;
    const code = newPairingCode();
    const expiresAt = now + HOUR_MS;
    const name = oneLine(message.sender.name, NAME_CHARS) || senderId;
    const { address, kind } = message.chat;
    const place = { chat: { id: chatId, channel, address, kind }, threadId: message.threadId };
    const text =
      `I do not know you yet. Please give this code to whoever runs me: ${code}\n\n` +
      'It is good for one hour. What you wrote until then is not kept, so please write again afterwards.';
    const answer = this.postTo(place, text);
    if (answer === null) return;
    const words = `${quoted(name)} (${labelOf(channel)}) wants to talk. Their code is ${code}.`;
    const announcements = (await ownerChats(this.services)).flatMap(
      (chat) => this.announcementTo({ chat, threadId: null }, words, code, expiresAt) ?? [],
    );
    const outcome = await store.requestPairing(ask, { name, code, expiresAt, answer, announcements });
    // Another process may have given the last code meanwhile.
    if (outcome === 'full') this.noCode(channel, senderId);
    if (outcome !== 'asked') return;
    const fields = { sender: senderId, name };
    log.warn(fields, `an unknown sender wants to talk; to let them in: coterie pair approve ${code}`);
    for (const posted of [answer, ...announcements.map(({ post }) => post)]) deliver.wake(posted.chatId);
  }

  /** Asks in an owner's chat whether to let somebody in. The code distinguishes people of the same name. */
  private announcementTo(place: ChatPlace, words: string, code: string, until: number): Announcement | null {
    const { channels, newId } = this.services;
    const channel = channels.get(place.chat.channel);
    if (channel === undefined) return null;
    const options = [
      { label: 'Let in', command: { name: pairing.name, argument: `approve ${code}` } },
      { label: 'Refuse', command: { name: pairing.name, argument: `refuse ${code}` } },
    ];
    const offer = { key: newId(), room: place.chat.id, senderId: null, options, until };
    const post = this.postTo(place, withNumbers(channel, words, offer));
    if (post === null) return null;
    const [delivery = post.delivery] = withButtons(channel, [post.delivery], offer);
    return { post: { ...post, delivery }, offer };
  }

  private postTo({ chat, threadId }: ChatPlace, text: string): Post | null {
    const { channels, newId, clock } = this.services;
    const { id: chatId, channel, address, kind } = chat;
    const [body] = channels.get(channel)?.compose(text) ?? [];
    if (!body) return null;
    const origin = `pairing:${newId()}`;
    const delivery = { origin, personaId: null, speaker: 'coterie', part: 0, body, replyTo: null };
    return { chatId, channel, address, threadId, kind, now: clock.now(), delivery };
  }

  /** If the bot was called in the group, the operator is told once that it waits for approval. */
  private async noteGroup(channel: string, message: InboundMessage, chatId: ChatId): Promise<void> {
    const { chat, mentionsBot, replyTo, text } = message;
    const { store, clock, log } = this.services;
    if (!mentionsBot && !replyTo?.ours && !text.startsWith('/')) return;
    const title = oneLine(chat.title, NAME_CHARS) || chatId;
    const within = chat.within === undefined ? {} : { within: platformId(channel, chat.within) };
    if (!(await store.noteGroup({ chatId, ...within, title, now: clock.now(), ...GROUPS }))) return;
    const sum: Sum = (chats, count) =>
      log.warn(
        { channel, chats },
        `mentioned in ${count} other groups that are not listed; coterie pair list shows them`,
      );
    if (!this.mayName(`group ${channel}`, chatId, AT_ONCE, sum)) return;
    const fields = { chat: chatId, title };
    log.warn(fields, `mentioned in a group that is not listed; to allow it: coterie pair approve ${chatId}`);
  }
}
