/**
 * Sends one message, with a file or without: as the answer to a native command where one waits, else into the channel,
 * through a webhook where a persona has a name of its own there. Before it is sent again, it is made sure that it is not
 * there already. A message is changed and taken back in the way in which it was sent.
 */
import type { Part, Recipient, SendOptions, SendResult } from '../../core/channel.js';
import { readOutgoing, withEmptyNote } from '../kit/outgoing.js';
import type { Answers } from './answers.js';
import type { Base, Call } from './api.js';
import { authorOf, withName } from './author.js';
import { areButtonsRefused, CODE, failureOf, isRefusal, sendResult } from './failure.js';
import type { DiscordOptions } from './options.js';
import {
  type Content,
  contentOf,
  fits,
  isShort,
  isVoice,
  type NewMessage,
  newMessage,
  nonceOf,
  type Outgoing,
  pieces,
  roomOf,
  withoutButtons,
  withoutReference,
  withoutVoice,
  withVoice,
} from './outbound.js';
import { read } from './payload.js';
import { type Quotes, quoted } from './quotes.js';
import type { Resends } from './resend.js';
import { isSnowflake } from './snowflake.js';
import type { SaidBy, Speaker } from './speak.js';
import type { Uploads } from './uploads.js';
import { type VoiceForm, voiceForm } from './voice-note.js';

export interface Sender extends Base {
  options: DiscordOptions;
  answers: Answers;
  resends: Resends;
  speaker: Speaker;
  quotes: Quotes;
  uploads: Uploads;
}

/** The text goes with the file. One that is too long for that goes before it, in messages of its own. */
export async function send(
  sender: Sender,
  to: Recipient,
  part: Part,
  options: SendOptions,
): Promise<SendResult> {
  if (!isSnowflake(roomOf(to))) return { kind: 'refused', reason: `Discord has no channel ${roomOf(to)}` };
  const { file, ...words } = part;
  if (file === undefined) return sendOne(sender, to, words, [], options);
  const limit = { bytes: sender.uploads.most(to), platform: 'Discord' };
  const found = await readOutgoing(file, limit, options.signal);
  if (found.kind !== 'read') return found;
  const { bytes } = found;
  // The name may come before it, on a line of its own.
  const spare = options.appearance === undefined ? 0 : options.appearance.name.length + 1;
  const before = fits(words) ? [] : pieces(words, spare);
  const leads = options.leads === true;
  for (const [index, piece] of before.entries()) {
    const key = `${options.key}${String.fromCharCode(97 + index)}`;
    const result = await sendOne(sender, to, piece, [], { ...options, key, leads: leads && index === 0 });
    if (result.kind !== 'sent') return result;
  }
  const last = { ...options, leads: leads && before.length === 0 };
  const below = before.length === 0 ? words : { text: '', marks: [] };
  if (bytes.length === 0) {
    const text = withEmptyNote(below.text, file);
    return sendOne(sender, to, { ...below, text }, [], last);
  }
  const voice = voiceForm(file);
  const sent = { name: file.name, data: bytes, ...(voice && { contentType: 'audio/ogg' }) };
  const result = await sendOne(sender, to, below, [sent], last, voice);
  if (result.kind !== 'refused' || !('isTooLarge' in result)) return result;
  sender.uploads.noteRefused(to, bytes.length);
  return { kind: 'refused', reason: result.reason };
}

async function sendOne(
  sender: Sender,
  to: Recipient,
  part: Part,
  files: Outgoing['files'],
  options: SendOptions,
  voice: VoiceForm | null = null,
): Promise<SendResult> {
  const { answers, resends, speaker, quotes } = sender;
  const { replyTo, key, earlierTries, createdAt, signal } = options;
  const named = contentOf(withName(part, options), sender.options);
  const plain = contentOf(part, sender.options);
  const author = authorOf(to, options);
  const quote = author === null ? null : await quotes.of(to, replyTo, signal);
  const through = { plain: quoted(plain, quote, isShort), named: quoted(named, quote, isShort) };
  const content = named.content ?? '';
  const said = plain.content ?? '';
  const words = (shown: Content) => ({
    content: shown.content ?? '',
    heading: (shown.content ?? '').length - said.length,
  });
  const message: Outgoing = {
    room: roomOf(to),
    nonce: nonceOf(key, createdAt),
    files,
    earlierTries,
    createdAt,
    content,
    heading: content.length - said.length,
    ...(voice && { voice }),
    ...(author === null
      ? {}
      : {
          authored: {
            username: author.username,
            plain: words(through.plain),
            named: words(through.named),
          },
        }),
  };
  const answered = replyTo === null ? null : await answers.answer(replyTo, named, message, signal);
  if (answered !== null) return answered;
  const there = await resends.find(message, signal);
  if (there?.isOutdated && there.result.kind === 'sent') {
    const { platformMessageId } = there.result;
    const edited = await edit(sender, to, platformMessageId, part, options);
    if (edited.kind !== 'refused') return edited;
    await remove(sender, to, platformMessageId, options);
  } else if (there !== null) {
    return there.result;
  }
  resends.noteTry(message);
  if (author !== null) {
    const result = await speaker.speak(to, { author, ...through, message }, signal);
    if (result?.kind === 'sent') resends.noteSent(message, result.platformMessageId);
    if (result !== null) return result;
  }
  return post(sender, named, message, replyTo, signal);
}

async function post(
  { api, resends, speaker, log }: Sender,
  content: Content,
  message: Outgoing,
  replyTo: string | null,
  signal: AbortSignal,
): Promise<SendResult> {
  let body: NewMessage = withVoice(newMessage(content, message.nonce, replyTo), message.voice);
  for (;;) {
    try {
      const path = `/channels/${message.room}/messages`;
      const call: Call = { method: 'POST', path, body, files: message.files };
      const answer = read.answer(await api.call(call, signal));
      if (answer === undefined) {
        return { kind: 'unreachable', reason: 'Discord answers without a message', taken: 'no' };
      }
      resends.noteSent(message, answer.id);
      speaker.noteBot(answer.id);
      // Discord knew it by its nonce, with the words of an earlier try.
      const shows = answer.content?.trim() ?? message.content.trim();
      if (message.earlierTries > 0 && shows !== message.content.trim()) {
        const words = { content: '', ...content };
        await api.call({ method: 'PATCH', path: `${path}/${answer.id}`, body: words }, signal);
      }
      return { kind: 'sent', platformMessageId: answer.id };
    } catch (error) {
      const failure = failureOf(error);
      if (isVoice(body) && isRefusal(failure)) {
        log.debug({ channel: 'discord', reason: failure.reason }, 'a voice message is sent as a file');
        body = withoutVoice(body);
        continue;
      }
      if (body.components !== undefined && areButtonsRefused(failure)) {
        log.warn({ channel: 'discord', reason: failure.reason }, 'a message is sent without its buttons');
        body = withoutButtons(body);
        continue;
      }
      const isReference =
        failure.code === CODE.noHistoryToReplyTo ||
        (failure.code === CODE.invalidForm && failure.reason.includes('message_reference'));
      if (!isReference || body.message_reference === undefined) return sendResult(failure);
      log.debug({ channel: 'discord', reason: failure.reason }, 'a reply is sent without what it answers');
      body = withoutReference(body);
    }
  }
}

/** Never throws. `sent` only when Discord shows exactly this now. */
export async function edit(
  { api, speaker, quotes, options: channelOptions }: Sender,
  to: Recipient,
  id: string,
  part: Part,
  options: SendOptions,
): Promise<SendResult> {
  if (!isSnowflake(roomOf(to)) || !isSnowflake(id)) {
    return { kind: 'refused', reason: `Discord has no message ${id} in a channel ${roomOf(to)}` };
  }
  let by: SaidBy | null = null;
  try {
    by = await speaker.saidBy(to, id, options);
    if (by.kind === 'lost') return { kind: 'refused', reason: by.reason };
    const isPlain = by.kind === 'webhook' && !by.named;
    // What was there goes, also where nothing takes its place.
    const shown = isPlain ? part : withName(part, options);
    const quote = by.kind === 'webhook' ? await quotes.of(to, options.replyTo, options.signal) : null;
    const body = { content: '', components: [], ...quoted(contentOf(shown, channelOptions), quote, isShort) };
    const call = { ...callOn(by, 'PATCH', to, id), body };
    const answer = read.answer(await api.call(call, options.signal));
    // Discord takes white space at the ends away.
    if (answer?.content?.trim() === body.content.trim()) return { kind: 'sent', platformMessageId: id };
    return { kind: 'refused', reason: 'Discord shows something else than the edited message' };
  } catch (error) {
    const failure = failureOf(error);
    if (by?.kind === 'webhook') speaker.noteFailure(by.webhook, failure);
    return sendResult(failure);
  }
}

/** Never throws. */
export async function remove(
  { api, speaker, log }: Sender,
  to: Recipient,
  id: string,
  options: SendOptions,
): Promise<void> {
  if (!isSnowflake(roomOf(to)) || !isSnowflake(id)) return;
  // Where it is not known how it was said, or the webhook is lost, the bot may be one who removes what others say.
  const by = await speaker.saidBy(to, id, options).catch((): SaidBy => ({ kind: 'bot' }));
  for (const way of by.kind === 'webhook' ? [by, BOT] : [BOT]) {
    try {
      await api.call(callOn(way, 'DELETE', to, id), options.signal);
      return;
    } catch (error) {
      const failure = failureOf(error);
      if (way.kind === 'webhook') speaker.noteFailure(way.webhook, failure);
      log.debug({ channel: 'discord', reason: failure.reason }, 'a message could not be taken back');
      if (!isRefusal(failure)) return;
    }
  }
}

type Way = Exclude<SaidBy, { kind: 'lost' }>;
const BOT: Way = { kind: 'bot' };

function callOn(by: Way, method: Call['method'], to: Recipient, id: string): Call {
  if (by.kind === 'bot') return { method, path: `/channels/${roomOf(to)}/messages/${id}` };
  const { webhook, thread } = by;
  const path = `/webhooks/${webhook.id}/${webhook.token}/messages/${id}`;
  return { method, path, query: thread, anonymous: true };
}
