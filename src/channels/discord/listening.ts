/** What becomes of each event of the gateway, from the start of the channel to its end. */
import type { Receive } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import { describe } from '../../core/errors.js';
import { platformId } from '../../core/ids.js';
import type { Log } from '../../core/log.js';
import type { Address, InboundEvent } from '../../core/message.js';
import type { State } from '../kit/state.js';
import type { Answers } from './answers.js';
import type { Api } from './api.js';
import { createCatchUp, type Room } from './catch-up.js';
import { mayReadContent, NO_CONTENT } from './check.js';
import { createConnection } from './connection.js';
import type { Directory } from './directory.js';
import type { Identity } from './identity.js';
import { inbound } from './inbound.js';
import { createIntake } from './intake.js';
import { createLookup } from './lookup.js';
import type { DiscordOptions } from './options.js';
import { type Interaction, read } from './payload.js';
import { createQueue } from './queue.js';
import type { Resends } from './resend.js';
import type { Packet, Session } from './session.js';
import { suggest } from './suggest.js';
import type { Webhooks } from './webhooks.js';

const COMMAND = 2;
const AUTOCOMPLETION = 4;

export interface ListeningParts {
  options: DiscordOptions;
  api: Api;
  identity: Identity;
  session: Session;
  directory: Directory;
  answers: Answers;
  resends: Resends;
  webhooks: Webhooks;
  newest(): Promise<Room[]>;
  personaNames(chat: Address): Promise<string[]>;
  /** Of the connection, and of what is stored. */
  state: State;
  storing: State;
  clock: Clock;
  log: Log;
}

export interface Listening {
  /** Resolves when taking in has ended, and what was handed over is stored. Never rejects. */
  done: Promise<void>;
  /** Begins the connection anew. */
  fail(reason: string): void;
}

export function listen(parts: ListeningParts, receive: Receive, signal: AbortSignal): Listening {
  const { options, identity, session, directory, answers, resends, webhooks, log } = parts;
  const { token, bots } = options;

  function eventOf(kind: string, payload: unknown) {
    const me = identity.known();
    return me === null
      ? null
      : inbound(kind, payload, { me, directory, bots, isOurWebhook: webhooks.isOurs });
  }

  const common = { ...parts, token, signal, inbound: eventOf };
  const account = () => identity.known()?.id ?? '';
  const queue = createQueue({ ...common, receive, account, state: parts.storing });
  const lookup = createLookup(common);
  const intake = createIntake({ ...common, queue, lookup });
  const catchUp = createCatchUp({ ...common, intake, queue });
  const connection = createConnection({ ...common, take });

  /** The library calls it, so nothing may be thrown out of it. */
  function take(packet: Packet): void {
    const { kind, payload } = packet;
    if (!session.note(packet)) return;
    try {
      if (kind === 'GUILD_DELETE') logRemoval(payload);
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
  function act({ kind, payload }: Packet): boolean {
    switch (kind) {
      case 'READY':
        noteLogin(payload);
        catchUp.begin();
        return false;
      case 'GUILD_CREATE':
      case 'GUILD_DELETE':
        catchUp.noteGuild();
        return false;
      case 'MESSAGE_CREATE':
        if (read.message(payload)?.author?.id === identity.known()?.id) resends.noteEcho(payload);
        return true;
      case 'MESSAGE_UPDATE':
      case 'MESSAGE_DELETE':
      case 'MESSAGE_DELETE_BULK':
      case 'MESSAGE_REACTION_ADD':
        return true;
      case 'INTERACTION_CREATE': {
        const interaction = read.interaction(payload);
        if (interaction?.type === AUTOCOMPLETION) void suggest({ ...parts, token }, interaction);
        if (interaction?.type !== COMMAND) return false;
        awaitAnswer(interaction, eventOf(kind, payload));
        return true;
      }
      default:
        return false;
    }
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

  async function run(): Promise<void> {
    await session.load().catch((error) => {
      const reason = describe(error);
      log.warn(
        { channel: 'discord', reason },
        'the last session at Discord is not known; beginning a new one',
      );
    });
    await connection.run(signal);
    await queue.idle();
    await catchUp.idle();
    await session.save();
  }

  return { done: run(), fail: connection.fail };
}
