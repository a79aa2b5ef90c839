/** Native commands and pressed buttons: to be answered or announced within 3 s, and within 15 minutes. */
import * as Discord from 'discord-api-types/v10';
import type { ChoiceOutcome, Reception, SendResult } from '../../core/channel.js';
import type { ChatId } from '../../core/ids.js';
import { PRESS_ANSWERS } from '../kit/outgoing.js';
import type { ApiCall, Base } from './api.js';
import { areButtonsRefused, CODE, failureOf, sendResult } from './failure.js';
import { type Content, withoutButtons } from './outbound.js';
import { fieldsOf, hasFlag, idOf, textOf } from './payload.js';
import type { Outgoing, Resends } from './resend.js';

/** Our share of Discord's three seconds, after which an answer is announced. */
const ANNOUNCE_MS = 1_800;
const EXPIRES_MS = 14 * 60_000;
/** Codes after which there is nothing left to answer. */
const GONE = new Set<number | null>([
  CODE.unknownInteraction,
  CODE.unknownWebhook,
  CODE.unknownMessage,
  CODE.tokenExpired,
]);

export interface Interaction {
  id: string;
  token: string;
  applicationId: string;
}

/** A call for an interaction: without our token. */
function callback({ id, token }: Interaction, type: Discord.InteractionResponseType, data?: object): ApiCall {
  const path = `/interactions/${id}/${token}/callback`;
  return { method: 'POST', path, query: { with_response: 'true' }, body: { type, data }, anonymous: true };
}

function original({ applicationId, token }: Interaction, method: ApiCall['method'], body?: object): ApiCall {
  const path = `/webhooks/${applicationId}/${token}/messages/@original`;
  return { method, path, ...(body && { body }), anonymous: true };
}

function followUp({ applicationId, token }: Interaction, body: object): ApiCall {
  const path = `/webhooks/${applicationId}/${token}`;
  return { method: 'POST', path, query: { wait: 'true' }, body, anonymous: true };
}

/** Visible only to the person who gave the command or pressed the button. */
function privately(content: string) {
  return { content, flags: Discord.MessageFlags.Ephemeral, allowed_mentions: { parse: [] } };
}

/** A pending interaction: its steps run one after the other. */
interface PendingInteraction extends Interaction {
  before: Promise<unknown>;
  cancelTimers(): void;
}

const justCome = () => ({ before: Promise.resolve(), cancelTimers() {} });

/** The pending interactions. Each is announced in time, and expires when Discord accepts no more answers. */
function createWaiting<One extends PendingInteraction>(
  { clock }: Base,
  announce: (one: One) => Promise<void>,
  expired: (one: One) => void,
) {
  const waiting = new Map<string, One>();

  function inTurn<T>(one: One, act: () => Promise<T>): Promise<T> {
    const done = one.before.then(act);
    one.before = done.catch(() => {});
    return done;
  }

  function forget(one: One): void {
    one.cancelTimers();
    waiting.delete(one.id);
  }

  return {
    inTurn,
    forget,
    get: (id: string) => waiting.get(id),
    /** Adds it; idempotent. */
    open(one: One): void {
      if (waiting.has(one.id)) return;
      const cancelAnnouncing = clock.after(ANNOUNCE_MS, () => void inTurn(one, () => announce(one)));
      const cancelExpiry = clock.after(EXPIRES_MS, () => {
        forget(one);
        expired(one);
      });
      one.cancelTimers = () => {
        cancelAnnouncing();
        cancelExpiry();
      };
      waiting.set(one.id, one);
    },
    forgetAll(): void {
      for (const one of waiting.values()) forget(one);
    },
  };
}

type Why = Reception['rejected'][number]['why'];

interface Command extends PendingInteraction {
  /** Our ids of the chat, and of the guild that it is part of. */
  chat: ChatId;
  within: ChatId | null;
  /** `deferred`: an answer was announced. `lost`: Discord does not know it any more. */
  stage: 'open' | 'deferred' | 'answered' | 'lost';
  /** Answers that arrived, by the nonce of their message. */
  arrived: Map<string, string>;
}

/** Native commands. One that can no longer be answered as such gets an ordinary message. */
export class Answers {
  private readonly waiting: ReturnType<typeof createWaiting<Command>>;

  constructor(
    private readonly base: Base,
    private readonly resends: Resends,
  ) {
    this.waiting = createWaiting<Command>(
      base,
      (command) => this.defer(command),
      (command) => void this.waiting.inTurn(command, () => this.withdraw(command)),
    );
  }

  private failed(command: Command, error: unknown) {
    const failure = failureOf(error);
    const isLost = GONE.has(failure.code);
    if (isLost) command.stage = 'lost';
    return { ...failure, isLost };
  }

  private async quietly(command: Command, act: () => Promise<unknown>): Promise<void> {
    try {
      await act();
    } catch (error) {
      const { reason } = this.failed(command, error);
      this.base.log.debug({ channel: 'discord', reason }, 'answering a native command failed');
    }
  }

  private async defer(command: Command): Promise<void> {
    if (command.stage !== 'open') return;
    // A failure can be ignored: if it arrived all the same, the answer's own call is told so.
    await this.quietly(command, async () => {
      await this.base.api.call(
        callback(command, Discord.InteractionResponseType.DeferredChannelMessageWithSource),
      );
      command.stage = 'deferred';
    });
  }

  /** No answer will follow after all. */
  private async withdraw(command: Command): Promise<void> {
    if (command.stage === 'deferred')
      await this.quietly(command, () => this.base.api.call(original(command, 'DELETE')));
    command.stage = 'lost';
  }

  /** The message's id; null if another way is to be taken, as the stage tells. */
  private async answerFirst(command: Command, content: Content, message: Outgoing, signal: AbortSignal) {
    try {
      const first = callback(command, Discord.InteractionResponseType.ChannelMessageWithSource, content);
      const told = fieldsOf<Discord.RESTPostAPIInteractionCallbackWithResponseResult>(
        await this.base.api.call({ ...first, files: message.files }, signal),
      );
      command.stage = 'answered';
      const resource = fieldsOf<{ message: Discord.APIMessage }>(told.resource);
      return idOf(fieldsOf<Discord.APIMessage>(resource.message).id) ?? command.id;
    } catch (error) {
      if (failureOf(error).code !== CODE.alreadyAnswered) throw error;
    }
    // An earlier call arrived without our knowledge.
    const there = fieldsOf<Discord.APIMessage>(await this.base.api.call(original(command, 'GET'), signal));
    const isAnnounced = hasFlag(there.flags, Discord.MessageFlags.Loading);
    command.stage = isAnnounced ? 'deferred' : 'answered';
    const isSame = textOf(there.content)?.trim() === message.content.trim();
    return !isAnnounced && isSame ? (idOf(there.id) ?? null) : null;
  }

  private async answerNow(
    command: Command,
    content: Content,
    message: Outgoing,
    signal: AbortSignal,
  ): Promise<SendResult | null> {
    const known = command.arrived.get(message.nonce);
    if (known !== undefined) return { kind: 'sent', platformMessageId: known };
    const { files } = message;
    // An upload may take longer than Discord waits.
    if (files.length > 0) await this.defer(command);
    const idFrom = async (call: ApiCall) =>
      idOf(fieldsOf<Discord.APIMessage>(await this.base.api.call({ ...call, files }, signal)).id) ??
      command.id;
    let id: string | null = null;
    try {
      if (command.stage === 'open') id = await this.answerFirst(command, content, message, signal);
      if (id === null && command.stage === 'deferred') {
        id = await idFrom(original(command, 'PATCH', content));
        command.stage = 'answered';
      } else if (id === null && command.stage === 'answered') {
        // Such an answer has no nonce at Discord.
        const there = message.earlierTries > 0 ? await this.resends.findInChannel(message, signal) : null;
        if (there !== null && there.kind !== 'sent') return there;
        id = there?.platformMessageId ?? (await idFrom(followUp(command, content)));
      }
    } catch (error) {
      const failure = this.failed(command, error);
      if (content.components !== undefined && areButtonsRefused(failure)) {
        this.base.log.warn(
          { channel: 'discord', reason: failure.reason },
          'Discord refused buttons; answering without them',
        );
        return this.answerNow(command, withoutButtons(content), message, signal);
      }
      return failure.isLost ? null : sendResult(failure);
    }
    if (id === null) return null;
    command.arrived.set(message.nonce, id);
    this.resends.noteSent(message, id);
    return { kind: 'sent', platformMessageId: id };
  }

  /** Ends it, visible to nobody else. */
  private async answerPrivately(command: Command, content: string): Promise<void> {
    const data = privately(content);
    if (command.stage === 'open') {
      await this.base.api.call(
        callback(command, Discord.InteractionResponseType.ChannelMessageWithSource, data),
      );
    }
    if (command.stage !== 'deferred') return;
    // The announcement is visible to everybody.
    await this.base.api.call(original(command, 'DELETE'));
    await this.base.api.call(followUp(command, data));
  }

  open(interaction: Interaction, chat: ChatId, within: ChatId | null): void {
    this.waiting.open({ ...interaction, ...justCome(), chat, within, stage: 'open', arrived: new Map() });
  }
  awaits(id: string): boolean {
    const stage = this.waiting.get(id)?.stage;
    return stage === 'open' || stage === 'deferred';
  }
  /** Tells a person privately why they were not let in. Never rejects. */
  async turnAway(id: string, why: Why): Promise<void> {
    const command = this.waiting.get(id);
    if (command === undefined) return;
    this.waiting.forget(command);
    const words = turnedAway(why, command);
    await this.waiting.inTurn(command, () =>
      this.quietly(command, () => this.answerPrivately(command, words)),
    );
  }
  /** null if it is no such command, or can no longer be answered as one. */
  async answer(id: string, content: Content, message: Outgoing, signal: AbortSignal) {
    const command = this.waiting.get(id);
    if (command === undefined) return null;
    return this.waiting.inTurn(command, () => this.answerNow(command, content, message, signal));
  }
  close(): void {
    this.waiting.forgetAll();
  }
}

/** One sentence for somebody whose native command was not accepted. */
function turnedAway(why: Why, { chat, within }: Command): string {
  switch (why) {
    case 'unlisted group': {
      const whole = within === null ? '' : `, the id of the whole server is \`${within}\``;
      return `I don't talk in this channel yet: the person who runs this bot can let it in (its id is \`${chat}\`${whole}).`;
    }
    case 'unknown sender':
      return "We haven't met: please give the code I sent you to the person who runs this bot.";
    case 'closed':
      return 'I am not open to new conversations.';
  }
}

interface Press extends PendingInteraction {
  isAnswered: boolean;
}

export type Presses = ReturnType<typeof createPresses>;

/** Pressed buttons: answered when the press is stored, which removes the buttons. Best effort. */
export function createPresses(base: Base) {
  const { api, log } = base;
  const waiting = createWaiting<Press>(
    base,
    (press) => quietly(() => answerFirst(press, Discord.InteractionResponseType.DeferredMessageUpdate)),
    () => {},
  );
  const settling = new Set<Promise<void>>();

  async function quietly(act: () => Promise<unknown>): Promise<void> {
    try {
      await act();
    } catch (error) {
      log.debug(
        { channel: 'discord', reason: failureOf(error).reason },
        'acknowledging a button press failed',
      );
    }
  }

  async function answerFirst(
    press: Press,
    type: Discord.InteractionResponseType,
    data?: object,
  ): Promise<boolean> {
    if (press.isAnswered) return false;
    press.isAnswered = true;
    try {
      await api.call(callback(press, type, data));
      return true;
    } catch (error) {
      if (failureOf(error).code === CODE.alreadyAnswered) return false;
      throw error;
    }
  }

  async function answer(press: Press, became: ChoiceOutcome): Promise<void> {
    const noButtons = { components: [] };
    const words = PRESS_ANSWERS[became];
    if (became !== 'not yours') {
      await quietly(async () => {
        if (await answerFirst(press, Discord.InteractionResponseType.UpdateMessage, noButtons)) return;
        await api.call(original(press, 'PATCH', noButtons));
      });
    }
    if (words === null) return;
    await quietly(async () => {
      const data = privately(words);
      if (await answerFirst(press, Discord.InteractionResponseType.ChannelMessageWithSource, data)) return;
      await api.call(followUp(press, data));
    });
  }

  return {
    open: (interaction: Interaction): void =>
      waiting.open({ ...interaction, ...justCome(), isAnswered: false }),
    /** The press is stored, with this outcome. Returns at once. */
    settle(id: string, became: ChoiceOutcome): void {
      const press = waiting.get(id);
      if (press === undefined) return;
      waiting.forget(press);
      const done = waiting.inTurn(press, () => answer(press, became));
      settling.add(done);
      void done.then(() => settling.delete(done));
    },
    /** Resolves when the stored presses are answered. */
    async close(): Promise<void> {
      waiting.forgetAll();
      await Promise.all(settling);
    },
  };
}
