/** How one native command is answered: each step as a call of Discord's, and what its refusals mean for the next one. */
import type { SendResult } from '../../core/channel.js';
import type { Log } from '../../core/log.js';
import type { Api, Call } from './api.js';
import type { Earlier } from './earlier.js';
import { CODE, type Failure, failureOf, sendResult } from './failure.js';
import { LOADING } from './likeness.js';
import type { Content, Outgoing } from './outbound.js';
import { read } from './payload.js';

export interface Command {
  id: string;
  token: string;
  applicationId: string;
  /**
   * `deferred`: it was announced that an answer will follow. `lost`: Discord does not know it any more, so what is said
   * is an ordinary message.
   */
  stage: 'open' | 'deferred' | 'answered' | 'lost';
  /** Answers that arrived, by the key of their message. */
  arrived: Map<string, string>;
}

/** One step at a time for each command: whoever calls sees to that. None but `answer` says what went wrong. */
export interface Answering {
  /** Announces that an answer will follow. */
  defer(command: Command): Promise<void>;
  /** null where it cannot be answered any more. */
  answer(
    command: Command,
    content: Content,
    message: Outgoing,
    signal: AbortSignal,
  ): Promise<SendResult | null>;
  /** Says something that nobody else sees, and is the end of it. */
  whisper(command: Command, words: string): Promise<void>;
  /** Nothing will follow after all. */
  withdraw(command: Command): Promise<void>;
}

/** Kinds of a first answer. */
const ANSWER = 4;
const DEFERRED = 5;
/** Only who gave the command sees it. */
const EPHEMERAL = 1 << 6;

/** With these the place of the answer is gone. */
const GONE = new Set<number | null>([
  CODE.unknownInteraction,
  CODE.unknownWebhook,
  CODE.unknownMessage,
  CODE.tokenExpired,
]);

export function createAnswering(parts: { api: Api; earlier: Earlier; token: string; log: Log }): Answering {
  const { api, earlier, log } = parts;

  function failed(command: Command, error: unknown): Failure & { isLost: boolean } {
    const failure = failureOf(error, parts.token, command.token);
    const isLost = GONE.has(failure.code);
    if (isLost) command.stage = 'lost';
    return { ...failure, isLost };
  }

  async function orResult(
    command: Command,
    act: () => Promise<SendResult | null>,
  ): Promise<SendResult | null> {
    try {
      return await act();
    } catch (error) {
      const failure = failed(command, error);
      return failure.isLost ? null : sendResult(failure);
    }
  }

  async function quietly(command: Command, act: () => Promise<unknown>): Promise<void> {
    try {
      await act();
    } catch (error) {
      const { reason } = failed(command, error);
      log.debug({ channel: 'discord', reason }, 'whoever gave a native command could not be told');
    }
  }

  async function defer(command: Command): Promise<void> {
    if (command.stage !== 'open') return;
    // If it did arrive without our hearing of it, the answer will be told so.
    await quietly(command, async () => {
      await api.call(first(command, { type: DEFERRED }));
      command.stage = 'deferred';
    });
  }

  /** null where another way is to be taken, as the stage says. */
  async function answerFirst(
    command: Command,
    content: Content,
    { content: words, files }: Outgoing,
    signal: AbortSignal,
  ): Promise<SendResult | null> {
    try {
      const call = first(command, { type: ANSWER, data: content });
      const told = read.callback(await api.call({ ...call, files }, { signal }));
      command.stage = 'answered';
      return sent(told?.resource?.message?.id ?? command.id);
    } catch (error) {
      const failure = failed(command, error);
      if (failure.isLost) return null;
      if (failure.code !== CODE.alreadyAnswered) return sendResult(failure);
    }
    // An earlier call arrived, and we did not hear of it.
    return orResult(command, async () => {
      const there = read.sent(await api.call(original(command, 'GET'), { signal }));
      const isAnnounced = ((there?.flags ?? 0) & LOADING) !== 0;
      command.stage = isAnnounced ? 'deferred' : 'answered';
      return !isAnnounced && there?.content?.trim() === words.trim() ? sent(there.id) : null;
    });
  }

  function fill(command: Command, content: Content, { files }: Outgoing, signal: AbortSignal) {
    return orResult(command, async () => {
      const call = { ...original(command, 'PATCH'), body: content, files };
      const told = read.answer(await api.call(call, { signal }));
      command.stage = 'answered';
      return sent(told?.id ?? command.id);
    });
  }

  async function follow(command: Command, content: Content, message: Outgoing, signal: AbortSignal) {
    // It has no key by which Discord would know it.
    const there = message.earlierTries > 0 ? await earlier.findInChannel(message, signal) : null;
    if (there !== null) return there;
    return orResult(command, async () => {
      const call = { ...further(command, content), files: message.files };
      return sent(read.answer(await api.call(call, { signal }))?.id ?? command.id);
    });
  }

  return {
    defer,

    async answer(command, content, message, signal) {
      const id = command.arrived.get(message.nonce);
      if (id !== undefined) return sent(id);
      // An upload may take longer than Discord waits.
      if (message.files.length > 0) await defer(command);
      let result: SendResult | null = null;
      if (command.stage === 'open') result = await answerFirst(command, content, message, signal);
      if (result === null && command.stage === 'deferred') {
        result = await fill(command, content, message, signal);
      } else if (result === null && command.stage === 'answered') {
        result = await follow(command, content, message, signal);
      }
      if (result?.kind === 'sent') {
        command.arrived.set(message.nonce, result.platformMessageId);
        earlier.noteSent(message, result.platformMessageId);
      }
      return result;
    },

    whisper: (command, content) =>
      quietly(command, async () => {
        const data = { content, flags: EPHEMERAL, allowed_mentions: { parse: [] } };
        if (command.stage === 'open') await api.call(first(command, { type: ANSWER, data }));
        if (command.stage !== 'deferred') return;
        // What was announced is seen by everybody.
        await api.call(original(command, 'DELETE'));
        await api.call(further(command, data));
      }),

    async withdraw(command) {
      if (command.stage === 'deferred') await quietly(command, () => api.call(original(command, 'DELETE')));
      command.stage = 'lost';
    },
  };
}

function first({ id, token }: Command, body: object): Call {
  const path = `/interactions/${id}/${token}/callback`;
  return { method: 'POST', path, query: { with_response: 'true' }, body, anonymous: true };
}

function original({ applicationId, token }: Command, method: Call['method']): Call {
  return { method, path: `/webhooks/${applicationId}/${token}/messages/@original`, anonymous: true };
}

function further({ applicationId, token }: Command, body: object): Call {
  const path = `/webhooks/${applicationId}/${token}`;
  return { method: 'POST', path, query: { wait: 'true' }, body, anonymous: true };
}

function sent(platformMessageId: string): SendResult {
  return { kind: 'sent', platformMessageId };
}
