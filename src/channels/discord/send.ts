/** Sends a message: as a command's answer, into the channel, or through a persona's webhook. */
import type * as Discord from 'discord-api-types/v10';
import type { Part, Recipient, SendOptions, SendResult } from '../../core/channel.js';
import { readOutgoing, withEmptyNote } from '../kit/outgoing.js';
import type { ApiCall } from './api.js';
import { areButtonsRefused, CODE, failureOf, isRefusal, sendResult } from './failure.js';
import { type VoiceForm, voiceForm } from './files.js';
import {
  authorOf,
  type Content,
  contentOf,
  fits,
  nonceOf,
  pieces,
  referenceTo,
  roomOf,
  withName,
  withoutButtons,
} from './outbound.js';
import type { DiscordParts } from './parts.js';
import { isSnowflake } from './payload.js';
import type { Outgoing } from './resend.js';
import { quoted, type SaidBy } from './webhooks.js';

/** Of a server that another gateway hears of, Discord is asked how large a file may be. */
async function learnLimit(parts: DiscordParts, to: Recipient, signal: AbortSignal): Promise<void> {
  const { host, api, directory, log } = parts;
  if (!host.spread) return;
  await directory.askAround(api, roomOf(to), signal).catch((error) => {
    log.debug({ channel: 'discord', reason: failureOf(error).reason }, 'asking for a Discord server failed');
  });
}

/** The text goes with the file. If too long for that, it goes first, in messages of its own. */
export async function send(
  parts: DiscordParts,
  to: Recipient,
  part: Part,
  options: SendOptions,
): Promise<SendResult> {
  if (!isSnowflake(roomOf(to))) return { kind: 'refused', reason: `Discord has no channel ${roomOf(to)}` };
  const { file, ...words } = part;
  if (file === undefined) return sendOne(parts, to, words, [], options);
  await learnLimit(parts, to, options.signal);
  const limit = { bytes: parts.uploads.most(to), platform: 'Discord' };
  const found = await readOutgoing(file, limit, options.signal);
  if (found.kind !== 'read') return found;
  const { bytes } = found;
  // The name may come before it, on a line of its own.
  const spare = options.appearance === undefined ? 0 : options.appearance.name.length + 1;
  const before = fits(words) ? [] : pieces(words, spare);
  const leads = options.leads === true;
  for (const [index, piece] of before.entries()) {
    const key = `${options.key}${String.fromCharCode(97 + index)}`;
    const result = await sendOne(parts, to, piece, [], { ...options, key, leads: leads && index === 0 });
    if (result.kind !== 'sent') return result;
  }
  const last = { ...options, leads: leads && before.length === 0 };
  const below = before.length === 0 ? words : { text: '', marks: [] };
  if (bytes.length === 0) {
    return sendOne(parts, to, { ...below, text: withEmptyNote(below.text, file) }, [], last);
  }
  const voice = voiceForm(file);
  const sent = { name: file.name, data: bytes, ...(voice && { contentType: 'audio/ogg' }) };
  const result = await sendOne(parts, to, below, [sent], last, voice);
  if (result.kind !== 'refused' || !('isTooLarge' in result)) return result;
  parts.uploads.noteRefused(to, bytes.length);
  return { kind: 'refused', reason: result.reason };
}

async function sendOne(
  parts: DiscordParts,
  to: Recipient,
  part: Part,
  files: Outgoing['files'],
  options: SendOptions,
  voice: VoiceForm | null = null,
): Promise<SendResult> {
  const { answers, resends, webhooks, faces, quotes } = parts;
  const { replyTo, key, earlierTries, createdAt, signal } = options;
  const named = contentOf(withName(part, options), parts.options);
  const plain = contentOf(part, parts.options);
  const said = plain.content ?? '';
  const author = authorOf(to, options);
  const quote = author === null ? null : await quotes.of(to, replyTo, signal);
  const through = { plain: quoted(plain, quote), named: quoted(named, quote) };
  const words = ({ content = '' }: Content) => ({ content, heading: content.length - said.length });
  const message: Outgoing = {
    ...words(named),
    room: roomOf(to),
    nonce: nonceOf(key, createdAt),
    files,
    earlierTries,
    createdAt,
    authored: author && {
      username: author.username,
      plain: words(through.plain),
      named: words(through.named),
    },
  };
  const answered = replyTo === null ? null : await answers.answer(replyTo, named, message, signal);
  if (answered !== null) return answered;
  const there = await resends.find(message, signal);
  if (there !== null && (!there.isOutdated || there.result.kind !== 'sent')) return there.result;
  if (there?.result.kind === 'sent') {
    const { platformMessageId } = there.result;
    const edited = await edit(parts, to, platformMessageId, part, options);
    if (edited.kind !== 'refused') return edited;
    await remove(parts, to, platformMessageId, options);
  }
  resends.noteTry(message);
  if (author !== null) {
    const face = await faces.wanted(to, options);
    const spoken = { author, face, ...through, files, room: message.room };
    const result = await webhooks.say(to, spoken, signal);
    if (result?.kind === 'sent') resends.noteSent(message, result.platformMessageId);
    if (result !== null) return result;
  }
  return post(parts, named, message, replyTo, voice, signal);
}

/** As the bot itself. Drops parts that Discord refuses (voice form, buttons, reference). */
async function post(
  { api, resends, webhooks, log }: DiscordParts,
  content: Content,
  message: Outgoing,
  replyTo: string | null,
  voice: VoiceForm | null,
  signal: AbortSignal,
): Promise<SendResult> {
  const path = `/channels/${message.room}/messages`;
  let said = content;
  // A voice message has no text.
  let form = content.content === undefined ? voice : null;
  let reference: ReturnType<typeof referenceTo> = referenceTo(replyTo);
  for (;;) {
    try {
      const flags = (said.flags ?? 0) | (form?.flags ?? 0);
      const body = {
        ...said,
        ...form,
        ...(flags === 0 ? {} : { flags }),
        ...reference,
        nonce: message.nonce,
        enforce_nonce: true,
      };
      const call: ApiCall = { method: 'POST', path, body, files: message.files };
      const { id, content: shows } = await api.call<Discord.APIMessage>(call, signal);
      if (!id) return { kind: 'unreachable', reason: 'Discord answers without a message', taken: 'no' };
      resends.noteSent(message, id);
      webhooks.noteBot(id);
      // Discord matched its nonce, with the words of an earlier try.
      if (message.earlierTries > 0 && shows.trim() !== message.content.trim()) {
        const words = { content: '', ...said };
        await api.call({ method: 'PATCH', path: `${path}/${id}`, body: words }, signal);
      }
      return { kind: 'sent', platformMessageId: id };
    } catch (error) {
      const failure = failureOf(error);
      const told = { channel: 'discord', reason: failure.reason };
      const isReference =
        failure.code === CODE.noHistoryToReplyTo ||
        (failure.code === CODE.invalidForm && failure.reason.includes('message_reference'));
      if (form !== null && isRefusal(failure)) {
        log.debug(told, 'Discord refused a voice message; sending it as a file');
        form = null;
      } else if (said.components !== undefined && areButtonsRefused(failure)) {
        log.warn(told, 'Discord refused buttons; sending the message without them');
        said = withoutButtons(said);
      } else if (isReference && 'message_reference' in reference) {
        log.debug(told, 'Discord refused a reply; sending it as a message');
        reference = {};
      } else {
        return sendResult(failure);
      }
    }
  }
}

/** Never throws. `sent` only if Discord now shows exactly this. */
export async function edit(
  { api, webhooks, quotes, options: channelOptions }: DiscordParts,
  to: Recipient,
  id: string,
  part: Part,
  options: SendOptions,
): Promise<SendResult> {
  const unknown = unknownMessage(to, id);
  if (unknown !== null) return unknown;
  let by: SaidBy | null = null;
  try {
    by = await webhooks.saidBy(to, id, options);
    if (by.kind === 'lost') return { kind: 'refused', reason: 'the webhook of the message is gone' };
    const isPlain = by.kind === 'webhook' && !by.named;
    const content = contentOf(isPlain ? part : withName(part, options), channelOptions);
    const quote = by.kind === 'webhook' ? await quotes.of(to, options.replyTo, options.signal) : null;
    // Earlier text and buttons are removed, even without a replacement.
    const body = { content: '', components: [], ...quoted(content, quote) };
    const call = { ...callOn(by, 'PATCH', to, id), body };
    const shows = await api.call<Partial<Discord.APIMessage>>(call, options.signal);
    // Discord trims messages.
    if (shows.content?.trim() === body.content.trim()) return { kind: 'sent', platformMessageId: id };
    return { kind: 'refused', reason: 'Discord shows something else than the edited message' };
  } catch (error) {
    const failure = failureOf(error);
    if (by?.kind === 'webhook') webhooks.noteFailure(by.webhook, failure);
    return sendResult(failure);
  }
}

/** Never throws. */
export async function remove(
  { api, webhooks, log }: DiscordParts,
  to: Recipient,
  id: string,
  options: SendOptions,
): Promise<boolean> {
  if (unknownMessage(to, id) !== null) return false;
  // If the author is unknown, the bot may have permission to delete other people's messages.
  const by = await webhooks.saidBy(to, id, options).catch((): SaidBy => BOT);
  for (const way of by.kind === 'webhook' ? [by, BOT] : [BOT]) {
    try {
      await api.call(callOn(way, 'DELETE', to, id), options.signal);
      return true;
    } catch (error) {
      const failure = failureOf(error);
      if (way.kind === 'webhook') webhooks.noteFailure(way.webhook, failure);
      log.debug({ channel: 'discord', reason: failure.reason }, 'removing a message failed');
      if (!isRefusal(failure)) return false;
    }
  }
  return false;
}

/** The bot's reaction to a message. It is the account's, for any persona. Never throws. */
export async function react(
  { api }: DiscordParts,
  to: Recipient,
  id: string,
  emoji: string,
  signal: AbortSignal,
): Promise<SendResult> {
  const unknown = unknownMessage(to, id);
  if (unknown !== null) return unknown;
  try {
    const path = `/channels/${roomOf(to)}/messages/${id}/reactions/${encodeURIComponent(emoji)}/@me`;
    await api.call({ method: 'PUT', path }, signal);
    return { kind: 'sent', platformMessageId: id };
  } catch (error) {
    return sendResult(failureOf(error));
  }
}

function unknownMessage(to: Recipient, id: string): SendResult | null {
  if (isSnowflake(roomOf(to)) && isSnowflake(id)) return null;
  return { kind: 'refused', reason: `Discord has no message ${id} in a channel ${roomOf(to)}` };
}

type Way = Exclude<SaidBy, { kind: 'lost' }>;
const BOT: Way = { kind: 'bot' };

function callOn(by: Way, method: ApiCall['method'], to: Recipient, id: string): ApiCall {
  if (by.kind === 'bot') return { method, path: `/channels/${roomOf(to)}/messages/${id}` };
  const { webhook, thread } = by;
  const path = `/webhooks/${webhook.id}/${webhook.token}/messages/${id}`;
  return { method, path, query: thread, anonymous: true };
}
