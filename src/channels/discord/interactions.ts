/** Native commands and pressed buttons: to be answered or announced within 3 s, and within 15 minutes. */
import * as Discord from 'discord-api-types/v10';
import type { ChoiceOutcome, Reception, SendResult } from '../../core/channel.js';
import { createMutex, type Mutex } from '../../core/concurrency.js';
import { platformId } from '../../core/ids.js';
import type { InboundChat } from '../../core/message.js';
import { PRESS_ANSWERS } from '../kit/outgoing.js';
import type { ApiCall, Base } from './api.js';
import { areButtonsRefused, CODE, failureOf, sendResult } from './failure.js';
import type { HandedOver } from './handed-over.js';
import { type Content, withoutButtons } from './outbound.js';
import { hasFlag } from './payload.js';
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

interface Interaction {
  id: string;
  token: string;
  application_id: string;
}

interface PendingInteraction extends Interaction {
  /** Its steps run one after the other. */
  inTurn: Mutex;
  /** `deferred`: an answer was announced. `lost`: Discord does not know it any more. */
  stage: 'open' | 'deferred' | 'answered' | 'lost';
}

/** A call for an interaction: without our token. */
function callback({ id, token }: Interaction, type: Discord.InteractionResponseType, data?: object): ApiCall {
  const path = `/interactions/${id}/${token}/callback`;
  return { method: 'POST', path, query: { with_response: 'true' }, body: { type, data }, anonymous: true };
}

function original({ application_id, token }: Interaction, method: ApiCall['method'], body?: object): ApiCall {
  const path = `/webhooks/${application_id}/${token}/messages/@original`;
  return { method, path, body, anonymous: true };
}

function followUp({ application_id, token }: Interaction, body: object): ApiCall {
  const path = `/webhooks/${application_id}/${token}`;
  return { method: 'POST', path, query: { wait: 'true' }, body, anonymous: true };
}

/** Visible only to the person who gave the command or pressed the button. */
function privately(content: string) {
  return { content, flags: Discord.MessageFlags.Ephemeral, allowed_mentions: { parse: [] } };
}

/** Each is announced in time, and expires when Discord accepts no more answers. */
abstract class Interactions<One extends PendingInteraction> {
  private readonly pending = new Map<string, { one: One; timers: (() => void)[] }>();

  constructor(protected readonly base: Base) {}

  protected abstract announce(one: One): Promise<void>;
  protected async expire(_one: One): Promise<void> {}

  /** Adds it; idempotent. */
  protected add(one: One): void {
    if (this.pending.has(one.id)) return;
    const { clock } = this.base;
    const timers = [
      clock.after(ANNOUNCE_MS, () => void one.inTurn(() => this.announce(one))),
      clock.after(EXPIRES_MS, () => {
        this.take(one.id);
        void one.inTurn(() => this.expire(one));
      }),
    ];
    this.pending.set(one.id, { one, timers });
  }

  protected get(id: string): One | undefined {
    return this.pending.get(id)?.one;
  }

  /** It is neither announced nor expires any more. */
  protected take(id: string): One | undefined {
    const { one, timers = [] } = this.pending.get(id) ?? {};
    for (const cancel of timers) cancel();
    this.pending.delete(id);
    return one;
  }

  /** Best effort. */
  protected async quietly(one: One, act: () => Promise<unknown>): Promise<void> {
    try {
      await act();
    } catch (error) {
      const { reason, code } = failureOf(error);
      if (GONE.has(code)) one.stage = 'lost';
      this.base.log.debug({ channel: 'discord', reason }, 'answering a Discord interaction failed');
    }
  }

  async close(): Promise<void> {
    for (const id of this.pending.keys()) this.take(id);
  }
}

type Why = Reception['rejected'][number]['why'];

interface Command extends PendingInteraction {
  chat: InboundChat;
}

/** Native commands. One that can no longer be answered as such gets an ordinary message. */
export class Answers extends Interactions<Command> {
  constructor(
    base: Base,
    private readonly resends: Resends,
    private readonly handedOver: HandedOver,
  ) {
    super(base);
  }

  open(interaction: Interaction, chat: InboundChat): void {
    this.add({ ...interaction, inTurn: createMutex(), stage: 'open', chat });
  }

  /** Another gateway may answer it. */
  async handOver(id: string, shard: number): Promise<void> {
    const command = this.get(id);
    if (command === undefined) return;
    const { token, application_id, chat } = command;
    await this.handedOver.keep(shard, { id, token, application_id, chat });
  }

  /** At once, but for one that may have come to another gateway. */
  awaits(id: string): boolean | Promise<boolean> {
    const isWaiting = ({ stage }: Command) => stage === 'open' || stage === 'deferred';
    const command = this.get(id);
    if (command !== undefined) return isWaiting(command);
    if (!this.handedOver.isUsed()) return false;
    return this.takeOver(id).then((found) => found !== undefined && isWaiting(found));
  }

  /** One that came to another gateway. */
  private async takeOver(id: string): Promise<Command | undefined> {
    const found = await this.handedOver.find(id);
    if (found !== null) this.open(found, found.chat);
    return this.get(id);
  }

  /** Tells a person privately why they were not let in. Never rejects. */
  async turnAway(id: string, why: Why): Promise<void> {
    const command = this.take(id);
    if (command === undefined) return;
    const data = privately(turnedAway(why, command.chat));
    await command.inTurn(() => this.quietly(command, () => this.answerPrivately(command, data)));
  }

  /** null if it is no such command, or can no longer be answered as one. */
  async answer(id: string, content: Content, message: Outgoing, signal: AbortSignal) {
    const command = this.get(id) ?? (await this.takeOver(id));
    return command?.inTurn(() => this.answerNow(command, content, message, signal)) ?? null;
  }

  protected async announce(command: Command): Promise<void> {
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
  protected override async expire(command: Command): Promise<void> {
    if (command.stage === 'deferred') {
      await this.quietly(command, async () => {
        // Another gateway may have answered it.
        const there = await this.base.api.call<Discord.APIMessage>(original(command, 'GET'));
        if (hasFlag(there.flags, Discord.MessageFlags.Loading)) {
          await this.base.api.call(original(command, 'DELETE'));
        }
      });
    }
    command.stage = 'lost';
  }

  /** The message's id; null if another way is to be taken, as the stage tells. */
  private async answerFirst(command: Command, content: Content, message: Outgoing, signal: AbortSignal) {
    const { api } = this.base;
    try {
      const first = callback(command, Discord.InteractionResponseType.ChannelMessageWithSource, content);
      const told = await api.call<Discord.RESTPostAPIInteractionCallbackWithResponseResult | null>(
        { ...first, files: message.files },
        signal,
      );
      command.stage = 'answered';
      return told?.resource?.message?.id ?? command.id;
    } catch (error) {
      if (failureOf(error).code !== CODE.alreadyAnswered) throw error;
    }
    // An earlier call arrived without our knowledge.
    const there = await api.call<Discord.APIMessage>(original(command, 'GET'), signal);
    const isAnnounced = hasFlag(there.flags, Discord.MessageFlags.Loading);
    command.stage = isAnnounced ? 'deferred' : 'answered';
    return !isAnnounced && there.content.trim() === message.content.trim() ? there.id : null;
  }

  private async answerNow(
    command: Command,
    content: Content,
    message: Outgoing,
    signal: AbortSignal,
  ): Promise<SendResult | null> {
    const known = this.resends.arrivedAs(message);
    if (known !== undefined) return { kind: 'sent', platformMessageId: known };
    const { files } = message;
    // An upload may take longer than Discord waits.
    if (files.length > 0) await this.announce(command);
    const idFrom = async (call: ApiCall) =>
      (await this.base.api.call<Discord.APIMessage>({ ...call, files }, signal)).id ?? command.id;
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
      const failure = failureOf(error);
      if (GONE.has(failure.code)) command.stage = 'lost';
      if (content.components !== undefined && areButtonsRefused(failure)) {
        const { reason } = failure;
        this.base.log.warn({ channel: 'discord', reason }, 'Discord refused buttons; answering without them');
        return this.answerNow(command, withoutButtons(content), message, signal);
      }
      return command.stage === 'lost' ? null : sendResult(failure);
    }
    if (id === null) return null;
    this.resends.noteSent(message, id);
    return { kind: 'sent', platformMessageId: id };
  }

  /** Ends it, visible to nobody else. */
  private async answerPrivately(command: Command, data: object): Promise<void> {
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
}

/** One sentence for somebody whose native command was not accepted. */
function turnedAway(why: Why, { address, within }: InboundChat): string {
  switch (why) {
    case 'unlisted group': {
      const id = (each: string) => `\`${platformId('discord', each)}\``;
      const whole = within === undefined ? '' : `, the id of the whole server is ${id(within)}`;
      return `I don't talk in this channel yet: the person who runs this bot can let it in (its id is ${id(address)}${whole}).`;
    }
    case 'unknown sender':
      return "We haven't met: please give the code I sent you to the person who runs this bot.";
    case 'closed':
      return 'I am not open to new conversations.';
  }
}

/** Pressed buttons: answered when the press is stored, which removes the buttons. Best effort. */
export class Presses extends Interactions<PendingInteraction> {
  private readonly settling = new Set<Promise<void>>();

  open(interaction: Interaction): void {
    this.add({ ...interaction, inTurn: createMutex(), stage: 'open' });
  }

  /** The press is stored, with this outcome. Returns at once. */
  settle(id: string, became: ChoiceOutcome): void {
    const press = this.take(id);
    if (press === undefined) return;
    const done = press.inTurn(() => this.answer(press, became));
    this.settling.add(done);
    void done.then(() => this.settling.delete(done));
  }

  /** Resolves when the stored presses are answered. */
  override async close(): Promise<void> {
    await super.close();
    await Promise.all(this.settling);
  }

  protected announce(press: PendingInteraction): Promise<void> {
    const { DeferredMessageUpdate } = Discord.InteractionResponseType;
    return this.quietly(press, () => this.answerFirst(press, DeferredMessageUpdate));
  }

  private async answer(press: PendingInteraction, became: ChoiceOutcome): Promise<void> {
    const { api } = this.base;
    const { UpdateMessage, ChannelMessageWithSource, DeferredMessageUpdate } =
      Discord.InteractionResponseType;
    if (became === 'kept') {
      return this.quietly(press, async () => void (await this.answerFirst(press, DeferredMessageUpdate)));
    }
    const noButtons = { components: [] };
    const words = PRESS_ANSWERS[became];
    if (became !== 'not yours') {
      await this.quietly(press, async () => {
        if (await this.answerFirst(press, UpdateMessage, noButtons)) return;
        await api.call(original(press, 'PATCH', noButtons));
      });
    }
    if (words === null) return;
    const data = privately(words);
    await this.quietly(press, async () => {
      if (await this.answerFirst(press, ChannelMessageWithSource, data)) return;
      await api.call(followUp(press, data));
    });
  }

  private async answerFirst(press: PendingInteraction, type: Discord.InteractionResponseType, data?: object) {
    if (press.stage !== 'open') return false;
    press.stage = 'answered';
    try {
      await this.base.api.call(callback(press, type, data));
      return true;
    } catch (error) {
      if (failureOf(error).code === CODE.alreadyAnswered) return false;
      throw error;
    }
  }
}
