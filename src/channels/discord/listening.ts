/** What becomes of each event of the gateway, from the start of the channel to its end. */

import type { ChannelState, Receive } from '../../core/channel.js';
import { describe } from '../../core/errors.js';
import { platformId } from '../../core/ids.js';
import type { Address, InboundEvent } from '../../core/message.js';
import type { Outward } from '../../core/network.js';
import type { State } from '../kit/supervise.js';
import type { Answers } from './answers.js';
import type { Base } from './api.js';
import { createCatchUp, type Room } from './catch-up.js';
import { mayReadContent, NO_CONTENT } from './check.js';
import { beingTyped, choices } from './commands.js';
import { createConnection } from './connection.js';
import { type Directory, placeOf } from './directory.js';
import { failureOf } from './failure.js';
import { createIdentifies } from './identifies.js';
import type { Identity } from './identity.js';
import { inbound } from './inbound.js';
import { createIntake } from './intake.js';
import { createLookup } from './lookup.js';
import type { DiscordOptions } from './options.js';
import { type Interaction, read } from './payload.js';
import type { Presses } from './presses.js';
import { tellPrivateThreads } from './private-threads.js';
import { createQueue } from './queue.js';
import type { Quotes } from './quotes.js';
import type { Resends } from './resend.js';
import type { Packet, Session } from './session.js';
import type { Uploads } from './uploads.js';
import type { Webhooks } from './webhooks.js';

/** Kinds of interactions, and of an answer to the last. */
const COMMAND = 2;
const PRESS = 3;
const AUTOCOMPLETION = 4;
const CHOICES = 8;

const CHANGES_OF_RIGHTS = /^(GUILD_ROLE_|CHANNEL_(CREATE|UPDATE)$|GUILD_(CREATE|UPDATE)$|THREAD_UPDATE$)/;

export interface ListeningParts extends Base {
  options: DiscordOptions;
  identity: Identity;
  session: Session;
  directory: Directory;
  answers: Answers;
  presses: Presses;
  resends: Resends;
  webhooks: Webhooks;
  quotes: Quotes;
  uploads: Uploads;
  state: ChannelState;
  newest(): Promise<Room[]>;
  personaNames(chat: Address): Promise<string[]>;
  /** Of the connection, and of what is stored. */
  connecting: State;
  outward: Outward;
  newId(): string;
  storing: State;
}

export interface Listening {
  /** Resolves when taking in has ended, and what was handed over is stored. Never rejects. */
  done: Promise<void>;
  /** Begins the connection anew. */
  fail(reason: string): void;
}

export function listen(parts: ListeningParts, receive: Receive, signal: AbortSignal): Listening {
  const { options, api, identity, session, directory, answers, presses, resends, webhooks } = parts;
  const { quotes, uploads, log } = parts;

  function eventOf({ kind, payload }: Pick<Packet, 'kind' | 'payload'>): InboundEvent | null {
    const me = identity.known();
    if (me === null) return null;
    const { bots } = options;
    const event = inbound(kind, payload, { me, directory, bots, isOurWebhook: webhooks.isOurs });
    if (event?.kind === 'message') quotes.note(event);
    return event;
  }

  const queue = createQueue(parts, receive, signal);
  const lookup = createLookup(parts, directory, signal);
  const intake = createIntake({ ...parts, queue, lookup, eventOf });
  const catchUp = createCatchUp({ ...parts, intake, queue, eventOf }, signal);
  const waitForIdentify = createIdentifies(parts);
  const connection = createConnection({ ...parts, waitForIdentify, take });

  /** The library calls it, so nothing may be thrown out of it. */
  function take(packet: Packet): void {
    const { kind, payload } = packet;
    if (!session.note(packet)) return;
    try {
      if (kind === 'GUILD_DELETE') logRemoval(payload);
      if (maySayMore(kind, payload)) api.forbidden.lift();
      directory.note(kind, payload);
      if (act(packet)) intake.take(packet);
      else session.done([packet]);
    } catch (error) {
      session.done([packet]);
      const reason = describe(error);
      log.error({ channel: 'discord', kind, reason }, 'an event of Discord could not be read');
    }
  }

  /** Whether it may be something to be stored. */
  function act(packet: Packet): boolean {
    const { kind, payload } = packet;
    switch (kind) {
      case 'READY':
        noteLogin(payload);
        catchUp.begin();
        return false;
      case 'THREAD_LIST_SYNC':
        catchUp.noteThreads(payload);
        return false;
      case 'GUILD_CREATE':
      case 'GUILD_DELETE':
        catchUp.noteGuild();
        return false;
      case 'MESSAGE_CREATE':
        if (read.message(payload)?.author?.id === identity.known()?.id) resends.noteEcho(payload);
        else noteWriting(payload);
        return true;
      case 'MESSAGE_UPDATE':
      case 'MESSAGE_DELETE':
      case 'MESSAGE_DELETE_BULK':
      case 'MESSAGE_REACTION_ADD':
        return true;
      case 'INTERACTION_CREATE': {
        const interaction = read.interaction(payload);
        const most = interaction?.attachment_size_limit;
        if (interaction !== undefined && most !== undefined) uploads.note(interaction.channel_id, most);
        if (interaction?.type === AUTOCOMPLETION) void suggest(interaction);
        const press = interaction?.type === PRESS ? read.press(payload) : undefined;
        if (press !== undefined) presses.open(press);
        if (interaction?.type !== COMMAND) return press !== undefined;
        awaitAnswer(interaction, eventOf(packet));
        return true;
      }
      default:
        return false;
    }
  }

  /** Whether the bot may be allowed to do something from now on. Of members, it hears of itself only. */
  function maySayMore(kind: string, payload: unknown): boolean {
    if (kind === 'GUILD_MEMBER_UPDATE') return read.member(payload)?.user?.id === identity.known()?.id;
    return CHANGES_OF_RIGHTS.test(kind);
  }

  function noteWriting(payload: unknown): void {
    const where = read.where(payload);
    if (where !== undefined && where.guild_id === undefined) api.forbidden.liftIn(where.channel_id);
  }

  function noteLogin(payload: unknown): void {
    const told = read.ready(payload);
    const me = identity.note(told?.user, told?.application?.id);
    const servers = told?.guilds?.length ?? 0;
    log.info({ channel: 'discord', bot: me?.name, servers }, 'logged in');
    const flags = told?.application?.flags;
    if (flags !== undefined && !mayReadContent(flags)) log.warn({ channel: 'discord' }, NO_CONTENT);
  }

  function logRemoval(payload: unknown): void {
    const told = read.guild(payload);
    if (told === undefined || told.unavailable) return;
    const server = directory.guildName(told.id) ?? told.id;
    log.warn({ channel: 'discord', server, id: told.id }, 'the bot was taken out of a server');
  }

  /** Discord shows whoever gave the command that it waits from now on. */
  function awaitAnswer({ id, token, application_id }: Interaction, event: InboundEvent | null): void {
    if (event?.kind !== 'message') return;
    const { address, within } = event.chat;
    answers.open({
      id,
      token,
      applicationId: application_id,
      chat: platformId('discord', address),
      within: within === undefined ? null : platformId('discord', within),
    });
  }

  /** Names of personas for somebody who is typing one. Without an answer, people type the name themselves. */
  async function suggest(interaction: Interaction): Promise<void> {
    const { id, token, data } = interaction;
    const typed = data === undefined ? null : beingTyped(data);
    if (typed === null) return;
    try {
      const names = await parts.personaNames(placeOf(directory, interaction).address);
      const body = { type: CHOICES, data: { choices: choices(names, typed) } };
      const path = `/interactions/${id}/${token}/callback`;
      await api.call({ method: 'POST', path, body, anonymous: true });
    } catch (error) {
      const { reason } = failureOf(error);
      log.debug({ channel: 'discord', reason }, 'no names of personas could be suggested');
    }
  }

  async function run(): Promise<void> {
    await session.load().catch((error) => {
      const reason = describe(error);
      log.warn(
        { channel: 'discord', reason },
        'the last session at Discord is not known; beginning a new one',
      );
    });
    const told = tellPrivateThreads({ ...parts, queue }, signal);
    await connection.run(signal);
    await told;
    await queue.idle();
    await catchUp.idle();
    await session.save();
  }

  return { done: run(), fail: connection.fail };
}
