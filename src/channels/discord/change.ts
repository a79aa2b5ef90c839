/** Puts other words into a message that was sent, or takes it back: each the way in which it was sent. */
import type { Part, Recipient, SendOptions, SendResult } from '../../core/channel.js';
import type { Log } from '../../core/log.js';
import type { Api, Call } from './api.js';
import { withName } from './face.js';
import { failureOf, isRefusal, sendResult } from './failure.js';
import { contentOf, roomOf, threadOf } from './outbound.js';
import { read } from './payload.js';
import { isSnowflake } from './snowflake.js';
import type { Voice, Voices } from './voice.js';

export interface Changer {
  api: Api;
  voices: Voices;
  token: string;
  log: Log;
}

type Spoken = Exclude<Voice, { kind: 'lost' }>;

/** Never throws. `sent` only when Discord shows exactly this now. */
export async function edit(
  { api, voices, token }: Changer,
  to: Recipient,
  id: string,
  part: Part,
  options: SendOptions,
): Promise<SendResult> {
  if (!isSnowflake(roomOf(to)) || !isSnowflake(id)) {
    return { kind: 'refused', reason: `Discord has no message ${id} in a channel ${roomOf(to)}` };
  }
  let secret = '';
  try {
    const voice = await voices.of(to, id, options);
    if (voice.kind === 'lost') return { kind: 'refused', reason: voice.reason };
    if (voice.kind === 'webhook') secret = voice.webhook.token;
    const isPlain = voice.kind === 'webhook' && !voice.named;
    // What was there goes, also where nothing takes its place.
    const body = { content: '', ...contentOf(isPlain ? part : withName(part, options)) };
    const call = { ...callOn(voice, 'PATCH', to, id), body };
    const answer = read.answer(await api.call(call, { signal: options.signal }));
    // Discord takes white space at the ends away.
    if (answer?.content?.trim() === body.content.trim()) return { kind: 'sent', platformMessageId: id };
    return { kind: 'refused', reason: 'Discord shows something else than the edited message' };
  } catch (error) {
    return sendResult(failureOf(error, token, secret));
  }
}

/** Never throws. */
export async function remove(
  { api, voices, token, log }: Changer,
  to: Recipient,
  id: string,
  options: SendOptions,
): Promise<void> {
  if (!isSnowflake(roomOf(to)) || !isSnowflake(id)) return;
  const { signal } = options;
  // Where nobody can say how it was said, or what said it is lost, the bot may be one who removes what others say.
  const voice = await voices.of(to, id, options).catch((): Voice => ({ kind: 'bot' }));
  const ways: Spoken[] = voice.kind === 'webhook' ? [voice, { kind: 'bot' }] : [{ kind: 'bot' }];
  for (const way of ways) {
    const secret = way.kind === 'webhook' ? way.webhook.token : '';
    try {
      await api.call(callOn(way, 'DELETE', to, id), { signal });
      return;
    } catch (error) {
      const failure = failureOf(error, token, secret);
      log.debug({ channel: 'discord', reason: failure.reason }, 'a message could not be taken back');
      if (!isRefusal(failure)) return;
    }
  }
}

function callOn(voice: Spoken, method: Call['method'], to: Recipient, id: string): Call {
  if (voice.kind === 'bot') return { method, path: `/channels/${roomOf(to)}/messages/${id}` };
  const { webhook } = voice;
  const path = `/webhooks/${webhook.id}/${webhook.token}/messages/${id}`;
  return { method, path, query: threadOf(to), anonymous: true };
}
