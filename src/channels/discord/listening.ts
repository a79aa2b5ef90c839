/** What becomes of each event of the gateway. It lives as long as taking in does. */
import type { Receive, Reception } from '../../core/channel.js';
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
import type { Directory } from './directory.js';
import type { Earlier } from './earlier.js';
import { createHandIn } from './hand-in.js';
import type { Identity } from './identity.js';
import { inbound } from './inbound.js';
import { createIntake } from './intake.js';
import type { DiscordOptions } from './options.js';
import { type Interaction, read } from './payload.js';
import { suggest } from './suggest.js';
import { supervised } from './supervise.js';
import type { Webhooks } from './webhooks.js';

const COMMAND = 2;
const AUTOCOMPLETION = 4;

export interface ListeningParts {
  options: DiscordOptions;
  api: Api;
  identity: Identity;
  directory: Directory;
  answers: Answers;
  earlier: Earlier;
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
  /** Resolves when taking in has ended, and what was handed in is stored. Never rejects. */
  done: Promise<void>;
  /** Begins the connection anew. */
  fail(reason: string): void;
}

export function listen(parts: ListeningParts, receive: Receive, signal: AbortSignal): Listening {
  const { options, api, identity, directory, answers, earlier, webhooks } = parts;
  const { state, storing, clock, log } = parts;
  const { token, bots } = options;

  function eventOf(kind: string, payload: unknown) {
    const me = identity.known();
    return me === null
      ? null
      : inbound(kind, payload, { me, directory, bots, isOurWebhook: webhooks.isOurs });
  }

  function onReception({ turnedAway }: Reception): void {
    for (const { platformMessageId, why } of turnedAway) void answers.turnAway(platformMessageId, why);
  }

  const handIn = createHandIn({
    ...{ receive, onReception, state: storing, clock, log, signal },
    account: () => identity.known()?.id ?? '',
  });
  const intake = createIntake({
    inbound: eventOf,
    log,
    hear: (event) => void handIn.add([event]),
    // A command says by itself where its channel belongs.
    isUnknown: (kind, room) => kind !== 'INTERACTION_CREATE' && directory.place(room) === null,
    lookUp: (room, guildId) => catchUp.lookUp(room, guildId),
  });
  const catchUp = createCatchUp({
    ...{ api, token, directory, intake, clock, log, signal },
    newest: parts.newest,
    inbound: eventOf,
    handIn: (events) => handIn.add(events, { piledUp: true }),
  });
  const connection = supervised({ options, onPacket, state, clock, log });

  /** The library calls it, so nothing may be thrown out of it. */
  function onPacket(kind: string, payload: unknown): void {
    try {
      if (kind === 'GUILD_DELETE') noteLeaving(payload);
      directory.note(kind, payload);
      act(kind, payload);
    } catch (error) {
      log.error(
        { channel: 'discord', kind, reason: describe(error) },
        'an event of Discord could not be read',
      );
    }
  }

  function act(kind: string, payload: unknown): void {
    switch (kind) {
      case 'READY':
        noteLogin(payload);
        catchUp.begin();
        break;
      case 'GUILD_CREATE':
      case 'GUILD_DELETE':
        catchUp.look();
        break;
      case 'MESSAGE_CREATE':
        if (read.message(payload)?.author?.id === identity.known()?.id) earlier.noteEcho(payload);
        intake.take(kind, payload);
        break;
      case 'MESSAGE_UPDATE':
      case 'MESSAGE_DELETE':
      case 'MESSAGE_DELETE_BULK':
      case 'MESSAGE_REACTION_ADD':
        intake.take(kind, payload);
        break;
      case 'INTERACTION_CREATE': {
        const interaction = read.interaction(payload);
        if (interaction?.type === AUTOCOMPLETION) void suggest({ ...parts, token }, interaction);
        if (interaction?.type !== COMMAND) break;
        awaitAnswer(interaction, eventOf(kind, payload));
        intake.take(kind, payload);
        break;
      }
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

  function noteLeaving(payload: unknown): void {
    const told = read.guild(payload);
    if (told === undefined || told.unavailable) return;
    const server = directory.guildName(told.id) ?? told.id;
    log.warn({ channel: 'discord', server, id: told.id }, 'the bot was taken out of a server');
  }

  /** Somebody watches the command from now on. */
  function awaitAnswer({ id, token, application_id }: Interaction, event: InboundEvent | null): void {
    if (event?.kind !== 'message') return;
    const { address, within } = event.chat;
    answers.open({
      ...{ id, token, applicationId: application_id, chat: platformId('discord', address) },
      within: within === undefined ? null : platformId('discord', within),
    });
  }

  const running = connection.run(signal);
  return {
    done: running.then(async () => {
      await handIn.idle();
      await catchUp.idle();
    }),
    fail: connection.fail,
  };
}
