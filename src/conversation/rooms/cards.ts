/**
 * Step 3 of the route: character cards among waiting messages become personas, without a model. Each is handed to the
 * command lane as `/persona import-file`, once per message; what is said with it or behind it is said to the new persona.
 */
import type { Channel } from '../../core/channel.js';
import { leaseOf } from '../../core/clock.js';
import { type RoomId, roomParts } from '../../core/ids.js';
import type { StoredAttachment } from '../../core/media.js';
import type { PendingCommand } from '../../core/receipt.js';
import { putSetting, type RoomState, settingOf } from '../../core/store.js';
import type { StoredMessage } from '../../core/transcript.js';
import { readFiles } from '../context/files.js';
import { rightsOf } from '../rights.js';
import { awaitedCardKey, importAsked, type SentCard } from '../sent-card.js';
import type { Services } from '../services.js';
import { claimRoom } from './arbiter.js';
import type { RoomRun } from './scheduler.js';

type KeptFile = StoredAttachment & { outcome: { kind: 'kept'; file: string } };

/** A message by which somebody sends a card, or may. */
interface CardSending {
  message: StoredMessage;
  /** null: it has other words. */
  asked: { name: string | null } | null;
}

/** Of files that are looked into; the others would be fetched for nothing. */
const NAMES = /^[^.]*$|\.(?:a?png|jpe?g|webp|charx|zip|json|ya?ml)$/i;
const TYPES = /^(?:image\/|(?:application|text)\/(?:json|zip|(?:x-)?yaml|octet-stream)$)/;
const AS_A_FILE =
  'A photo loses the card that is in it. Please send the picture again as a file (with the paper clip, as a document).';
const NO_CARD = 'Not imported: there is no character card in it.';

/** `commands`: the room is to be looked at again after them. Otherwise as seen, with the files that were read. */
export async function takeCards(
  services: Services,
  run: RoomRun,
  before: RoomState,
  channel: Channel,
): Promise<{ commands: PendingCommand[] } | { seen: RoomState }> {
  let seen = before;
  for (const message of before.waiting) {
    const sending = await sendingOf(services, run.room, seen, message);
    if (sending === null) continue;
    const taken = await take(services, run, seen, channel, sending);
    if ('commands' in taken) return taken;
    seen = taken.seen;
  }
  return { seen };
}

async function sendingOf(
  services: Services,
  room: RoomId,
  { chat }: RoomState,
  message: StoredMessage,
): Promise<CardSending | null> {
  const { author, attachments = [], text, words = text, quiet, reaction, forwardedFrom } = message;
  if (author.kind !== 'person' || author.bot || quiet || reaction || attachments.length === 0) return null;
  const isDirect = chat.kind === 'direct';
  const caption = forwardedFrom === undefined ? importAsked(words) : null;
  const asked = caption ?? (await awaited(services, room, author.id));
  if (asked === null && !attachments.some(mayBeCard)) return null;
  if (isDirect) return { message, asked };
  const isForBot = message.mentionsBot || message.replyTo?.ours === true || message.addresses !== undefined;
  if (asked === null && !isForBot) return null;
  const rights = await rightsOf(services, { chat, channel: chat.channel, sender: author });
  // Of somebody else, it is a document like any other; the command says that it is not theirs to give.
  return asked !== null || (await rights.mayChange()) === 'yes' ? { message, asked } : null;
}

/** Sent as a file: a photo has no name. */
function mayBeCard(attachment: StoredAttachment): boolean {
  const { name, mimeType, ofReply } = attachment;
  return !ofReply && isFile(attachment) && (NAMES.test(name ?? '') || TYPES.test(mimeType ?? ''));
}

function isFile({ kind, name }: StoredAttachment): boolean {
  return kind === 'document' || (kind === 'image' && name !== null);
}

async function awaited({ store, clock }: Services, room: RoomId, senderId: string) {
  const found = await settingOf(store, awaitedCardKey(room, senderId));
  if (found === null) return null;
  const { name, until } = JSON.parse(found) as { name: string; until: number };
  return until < clock.now() ? null : { name: name || null };
}

async function take(
  services: Services,
  run: RoomRun,
  seen: RoomState,
  channel: Channel,
  { message, asked }: CardSending,
): Promise<{ commands: PendingCommand[] } | { seen: RoomState }> {
  const { store, clock, deliver } = services;
  const { chat } = seen;
  const claim = await claimRoom(services, run, seen);
  if (claim === null) return { commands: [] };
  const request = { claim, channel, signal: run.signal, messages: [message], chatId: chat.id };
  const read = await readFiles(services, request);
  const current = read?.messages[0];
  if (current === undefined) return { commands: [] };
  const files = (current.attachments ?? []).filter(
    (each): each is KeptFile => isFile(each) && each.outcome?.kind === 'kept',
  );
  const cards = await cardsAmong(services, files, asked !== null);
  if (cards.length === 0 && asked === null) {
    const waiting = seen.waiting.map((each) => (each.id === message.id ? current : each));
    return { seen: { ...seen, fence: claim.fence, waiting } };
  }
  if (asked !== null && message.author.kind === 'person')
    await putSetting(store, awaitedCardKey(run.room, message.author.id), null);
  const commands: PendingCommand[] = [];
  for (const [n, file] of cards.entries()) {
    commands.push(...(await handOver(services, seen, message, file, asked, n)));
  }
  if (cards.length === 0) {
    const isPhoto = current.attachments?.every(({ kind, name }) => kind === 'image' && name === null);
    const notice = read?.notices[0]?.text;
    const to = { chat, threadId: roomParts(run.room).threadId };
    const text = isPhoto ? AS_A_FILE : notice ? `Not imported: ${notice}` : NO_CARD;
    await deliver.say(to, `notice:${message.id}`, text, message.platformMessageId);
  }
  const others = (current.attachments ?? []).filter((each) => !cards.includes(each as KeptFile));
  const words = asked === null ? (message.words ?? '').trim() : '';
  if (asked === null && (words !== '' || others.length > 0)) {
    const text = services.media.tell(words, others);
    await store.keepFiles(claim, { id: message.id, text, attachments: others });
    await store.hold(claim, null);
  } else {
    // Nothing is left to be answered.
    const noted = { seen: claim, turn: null, noted: [message.id], hearers: [], exchange: seen.exchange };
    await store.hear({ ...noted, lease: leaseOf(services) });
  }
  run.claim = null;
  services.log.info(
    { chat: chat.id, cards: cards.length, at: clock.now() },
    'files were taken for character cards',
  );
  return { commands };
}

/** Without a wish to import, only what is certainly one. */
async function cardsAmong(
  { cards, log }: Services,
  files: KeptFile[],
  isAsked: boolean,
): Promise<KeptFile[]> {
  const found: KeptFile[] = [];
  for (const file of files) {
    try {
      if ((isAsked || !file.ofReply) && (await cards.isCard(file.outcome.file))) found.push(file);
    } catch (error) {
      log.warn({ err: error }, 'a file could not be read again; it counts as no character card');
    }
  }
  return found;
}

/** Once per message and file, also after a crash. */
async function handOver(
  { store, clock }: Services,
  { chat, room }: RoomState,
  { id, author, platformMessageId }: StoredMessage,
  { outcome: { file }, name }: KeptFile,
  asked: CardSending['asked'],
  n: number,
): Promise<PendingCommand[]> {
  if (author.kind !== 'person' || chat.account === undefined) return [];
  const key = `card:${id}:${n}`;
  const { channel, account, activePersona: _active, invited: _invited, away: _away, ...place } = chat;
  const sent: SentCard = {
    file,
    fileName: name ?? 'card',
    name: asked?.name ?? null,
    messageId: platformMessageId ?? key,
  };
  const received = await store.receive({
    ...{ channel, account, now: clock.now() },
    receipts: [
      {
        ...{ kind: 'command', platformMessageId: key, threadId: roomParts(room).threadId },
        chat: place,
        sender: { id: author.id, name: author.name, administrator: author.administrator },
        command: { name: 'persona', argument: `import-file ${JSON.stringify(sent)}` },
      },
    ],
  });
  return received.commands;
}
