/**
 * Native commands that wait for their answer. Discord shows whoever gave one that it failed unless it hears of an answer
 * within three seconds: what takes longer is announced, and the answer then replaces the announcement. What cannot be
 * answered as such any more is left to an ordinary message.
 */
import type { Reception, SendResult } from '../../core/channel.js';
import type { ChatId } from '../../core/ids.js';
import type { Base, Call } from './api.js';
import { areButtonsRefused, CODE, failureOf, sendResult } from './failure.js';
import { type Content, type Outgoing, withoutButtons } from './outbound.js';
import { read } from './payload.js';
import { LOADING, type Resends } from './resend.js';

/** Of Discord's three seconds, so many are ours to answer at once. */
const DEFER_MS = 1_800;
/** Discord takes an answer for fifteen minutes. */
const EXPIRES_MS = 14 * 60_000;
/** Kinds of a first answer. */
const ANSWER = 4;
const DEFERRED = 5;
/** Only who gave the command sees it. */
const EPHEMERAL = 1 << 6;
/** With these, there is nothing left to answer to. */
const GONE = new Set<number | null>([
  CODE.unknownInteraction,
  CODE.unknownWebhook,
  CODE.unknownMessage,
  CODE.tokenExpired,
]);

type Why = Reception['turnedAway'][number]['why'];

interface Waiting {
  id: string;
  token: string;
  applicationId: string;
  /** Our ids of the chat, and of the guild that it is part of. */
  chat: ChatId;
  within: ChatId | null;
}

interface Command extends Waiting {
  /**
   * `deferred`: it was announced that an answer will follow. `lost`: Discord does not know it any more, so what is said
   * is an ordinary message.
   */
  stage: 'open' | 'deferred' | 'answered' | 'lost';
  /** Answers that arrived, by the nonce of their message. */
  arrived: Map<string, string>;
  /** Ends when the step before has: there is one at a time. */
  before: Promise<unknown>;
  cancelTimers(): void;
}

export type Answers = ReturnType<typeof createAnswers>;

export function createAnswers({ api, clock, log }: Base, resends: Resends) {
  const commands = new Map<string, Command>();

  function inTurn<T>(command: Command, act: () => Promise<T>): Promise<T> {
    const done = command.before.then(act);
    command.before = done.catch(() => {});
    return done;
  }

  function remove(command: Command): void {
    command.cancelTimers();
    commands.delete(command.id);
  }

  function failed(command: Command, error: unknown) {
    const failure = failureOf(error);
    const isLost = GONE.has(failure.code);
    if (isLost) command.stage = 'lost';
    return { ...failure, isLost };
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
  async function answerFirst(command: Command, content: Content, message: Outgoing, signal: AbortSignal) {
    try {
      const call = { ...first(command, { type: ANSWER, data: content }), files: message.files };
      const told = read.callback(await api.call(call, signal));
      command.stage = 'answered';
      return told?.resource?.message?.id ?? command.id;
    } catch (error) {
      if (failureOf(error).code !== CODE.alreadyAnswered) throw error;
    }
    // An earlier call arrived, and we did not hear of it.
    const there = read.sent(await api.call(original(command, 'GET'), signal));
    const isAnnounced = ((there?.flags ?? 0) & LOADING) !== 0;
    command.stage = isAnnounced ? 'deferred' : 'answered';
    return !isAnnounced && there?.content?.trim() === message.content.trim() ? there.id : null;
  }

  async function fill(command: Command, content: Content, { files }: Outgoing, signal: AbortSignal) {
    const call = { ...original(command, 'PATCH'), body: content, files };
    const told = read.answer(await api.call(call, signal));
    command.stage = 'answered';
    return told?.id ?? command.id;
  }

  async function follow(command: Command, content: Content, { files }: Outgoing, signal: AbortSignal) {
    const call = { ...further(command, content), files };
    return read.answer(await api.call(call, signal))?.id ?? command.id;
  }

  async function answer(
    command: Command,
    content: Content,
    message: Outgoing,
    signal: AbortSignal,
  ): Promise<SendResult | null> {
    const known = command.arrived.get(message.nonce);
    if (known !== undefined) return { kind: 'sent', platformMessageId: known };
    // An upload may take longer than Discord waits.
    if (message.files.length > 0) await defer(command);
    let id: string | null = null;
    try {
      if (command.stage === 'open') id = await answerFirst(command, content, message, signal);
      if (id === null && command.stage === 'deferred') {
        id = await fill(command, content, message, signal);
      } else if (id === null && command.stage === 'answered') {
        // Discord knows it by no nonce.
        const there = message.earlierTries > 0 ? await resends.findInChannel(message, signal) : null;
        if (there !== null && there.kind !== 'sent') return there;
        id = there?.platformMessageId ?? (await follow(command, content, message, signal));
      }
    } catch (error) {
      const failure = failed(command, error);
      if (content.components !== undefined && areButtonsRefused(failure)) {
        log.warn({ channel: 'discord', reason: failure.reason }, 'an answer is given without its buttons');
        return answer(command, withoutButtons(content), message, signal);
      }
      return failure.isLost ? null : sendResult(failure);
    }
    if (id === null) return null;
    command.arrived.set(message.nonce, id);
    resends.noteSent(message, id);
    return { kind: 'sent', platformMessageId: id };
  }

  /** Says something that nobody else sees, and is the end of it. */
  async function answerPrivately(command: Command, content: string): Promise<void> {
    const data = { content, flags: EPHEMERAL, allowed_mentions: { parse: [] } };
    if (command.stage === 'open') await api.call(first(command, { type: ANSWER, data }));
    if (command.stage !== 'deferred') return;
    // What was announced is seen by everybody.
    await api.call(original(command, 'DELETE'));
    await api.call(further(command, data));
  }

  /** Nothing will follow after all. */
  async function withdraw(command: Command): Promise<void> {
    if (command.stage === 'deferred') await quietly(command, () => api.call(original(command, 'DELETE')));
    command.stage = 'lost';
  }

  function expire(command: Command): void {
    remove(command);
    void inTurn(command, () => withdraw(command));
  }

  return {
    /** From now on it waits. Twice is once. */
    open(waiting: Waiting): void {
      if (commands.has(waiting.id)) return;
      const timers = [
        clock.after(DEFER_MS, () => void inTurn(command, () => defer(command))),
        clock.after(EXPIRES_MS, () => expire(command)),
      ];
      const command: Command = {
        ...waiting,
        stage: 'open',
        arrived: new Map(),
        before: Promise.resolve(),
        cancelTimers() {
          for (const cancel of timers) cancel();
        },
      };
      commands.set(command.id, command);
    },
    awaits(id: string): boolean {
      const stage = commands.get(id)?.stage;
      return stage === 'open' || stage === 'deferred';
    },
    /** Tells whoever gave the command why they were not let in, and nobody else. Never rejects. */
    async turnAway(id: string, why: Why): Promise<void> {
      const command = commands.get(id);
      if (command === undefined) return;
      remove(command);
      const words = turnedAway(why, command);
      await inTurn(command, () => quietly(command, () => answerPrivately(command, words)));
    },
    /** null where it is not such a command, or cannot be answered as one any more. */
    async answer(id: string, content: Content, message: Outgoing, signal: AbortSignal) {
      const command = commands.get(id);
      if (command === undefined) return null;
      return inTurn(command, () => answer(command, content, message, signal));
    },
    close(): void {
      for (const command of commands.values()) remove(command);
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

/** One sentence for whoever gave a native command and was not let in. */
function turnedAway(why: Why, { chat, within }: Waiting): string {
  switch (why) {
    case 'unlisted group': {
      const whole = within === null ? '' : `, the id of the whole server is \`${within}\``;
      return `I do not talk in this channel yet: whoever runs me can let it in (its id is \`${chat}\`${whole}).`;
    }
    case 'unknown sender':
      return 'I do not know you yet: please give the code that I sent you here to whoever runs me.';
    case 'closed':
      return 'I am not open to new conversations.';
  }
}
