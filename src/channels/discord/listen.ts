/** Handles each event of the gateway, from the start of the channel to its end. */
import * as Discord from 'discord-api-types/v10';
import { LRUCache } from 'lru-cache';
import type { ChannelHost, Receive, Reception } from '../../core/channel.js';
import { describe } from '../../core/errors.js';
import { platformId } from '../../core/ids.js';
import type { InboundEvent } from '../../core/message.js';
import { backoffMs, type State } from '../kit/supervise.js';
import type { Base } from './api.js';
import { CatchUp, createLanes, tellPrivateThreads } from './catch-up.js';
import { createConnection } from './connection.js';
import { createLookup, type Directory, type Identity, placeOf } from './directory.js';
import { failureOf, MOST_NOTED } from './failure.js';
import type { Uploads } from './files.js';
import { inbound } from './inbound.js';
import type { Answers, Interaction, Presses } from './interactions.js';
import type { DiscordOptions } from './options.js';
import { beingTyped, choices } from './outbound.js';
import { type Fields, fieldsOf, hasFlag, idOf, itemsOf, numberOf, textOf } from './payload.js';
import type { Resends } from './resend.js';
import type { GatewaySession, Packet } from './session.js';
import type { Quotes, Webhooks } from './webhooks.js';

const MESSAGE_CONTENT =
  Discord.ApplicationFlags.GatewayMessageContent | Discord.ApplicationFlags.GatewayMessageContentLimited;

export const NO_CONTENT =
  'the intent Message Content is off, so Discord does not let the bot in: tick it at discord.com/developers/applications, on the page Bot, under Privileged Gateway Intents';

export function mayReadContent(flags: unknown): boolean {
  return hasFlag(flags, MESSAGE_CONTENT);
}

export interface DiscordListener extends Base {
  host: ChannelHost<DiscordOptions>;
  identity: Identity;
  session: GatewaySession;
  directory: Directory;
  answers: Answers;
  presses: Presses;
  resends: Resends;
  webhooks: Webhooks;
  quotes: Quotes;
  uploads: Uploads;
  /** State of the connection, and of storing. */
  connecting: State;
  storing: State;
}

/** Keeps a transaction from delaying others. */
const MOST_AT_ONCE = 100;

interface Item {
  events: InboundEvent[];
  /** null: they were fetched. */
  packet: Packet | null;
  finish(): void;
}

/**
 * Passes events to step 1 of the route, in order and one batch at a time: at once if nothing is being stored,
 * else together with those that follow. Failed batches are retried, and everything behind them waits.
 */
function createQueue(listener: DiscordListener, receive: Receive, signal: AbortSignal) {
  const { identity, answers, presses, session, storing, clock, log } = listener;
  let waiting: Item[] = [];
  let working: Promise<void> | null = null;

  async function work(): Promise<void> {
    while (waiting.length > 0 && !signal.aborted) {
      // Fetched events are already one batch.
      const fetched = waiting.findIndex(({ packet }) => packet === null);
      const live = fetched === -1 ? waiting.length : fetched;
      const batch = waiting.splice(0, Math.min(Math.max(1, live), MOST_AT_ONCE));
      const reception = await store(batch);
      for (const { platformMessageId, why } of reception?.rejected ?? []) {
        void answers.turnAway(platformMessageId, why);
      }
      for (const [id, became] of reception?.choices ?? []) presses.settle(id, became);
      for (const { finish } of batch) finish();
    }
    for (const { finish } of waiting) finish();
    waiting = [];
    working = null;
  }

  /** null when the channel stops before it is stored. */
  async function store(batch: Item[]): Promise<Reception | null> {
    const packets = batch.flatMap(({ packet }) => packet ?? []);
    for (let failures = 0; !signal.aborted; failures += 1) {
      try {
        const cursor = session.cursorAfter(packets);
        const reception = await receive({
          channel: 'discord',
          account: identity.known()?.id ?? '',
          events: batch.flatMap(({ events }) => events),
          piledUp: batch.some(({ packet }) => packet === null || packet.isReplay),
          ...(cursor === undefined ? {} : { cursor }),
        });
        storing.up();
        session.done(packets);
        return reception;
      } catch (error) {
        const reason = `what came from Discord could not be stored: ${describe(error)}`;
        const pauseMs = backoffMs(failures);
        storing.down(reason);
        log.warn({ channel: 'discord', reason, pauseMs }, 'storing Discord events failed; retrying');
        await clock.sleep(pauseMs, signal);
      }
    }
    return null;
  }

  return {
    /** Resolves when they are stored, or when the channel stops before that. */
    add(events: InboundEvent[], packet: Packet | null): Promise<void> {
      return new Promise((resolve) => {
        if (events.length === 0 || signal.aborted) return resolve();
        waiting.push({ events, packet, finish: resolve });
        working ??= work();
      });
    },
    /** Resolves when nothing is being stored. */
    async idle(): Promise<void> {
      await working;
    },
  };
}

const CHANGES_OF_RIGHTS = /^(GUILD_ROLE_|CHANNEL_(CREATE|UPDATE)$|GUILD_(CREATE|UPDATE)$|THREAD_UPDATE$)/;
const STORED = new Set([
  'MESSAGE_CREATE',
  'MESSAGE_UPDATE',
  'MESSAGE_DELETE',
  'MESSAGE_DELETE_BULK',
  'MESSAGE_REACTION_ADD',
  'INTERACTION_CREATE',
]);

export type Listening = ReturnType<typeof listen>;

export function listen(listener: DiscordListener, receive: Receive, signal: AbortSignal) {
  const { host, api, identity, session, directory, log } = listener;
  const queue = createQueue(listener, receive, signal);
  const lookup = createLookup(listener, directory, signal);
  const lanes = createLanes();
  const edited = new LRUCache<string, true>({ max: MOST_NOTED });
  const newest = () => host.newest();
  const store = (events: InboundEvent[]) => queue.add(events, null);
  const missed = { ...listener, lanes, newest, eventOf, store };
  const catchUp = new CatchUp(missed, signal);
  const connection = createConnection({
    ...listener,
    token: host.options.token,
    state: host.state,
    outward: host.outward,
    newId: host.newId,
    take,
  });

  function eventOf(kind: string, payload: unknown): InboundEvent | null {
    const me = identity.known();
    if (me === null) return null;
    const { bots } = host.options;
    const event = inbound(kind, payload, { me, directory, bots, isOurWebhook: listener.webhooks.isOurs });
    if (event?.kind === 'message') listener.quotes.note(event);
    return event;
  }

  /** The library calls it, so it must not throw. */
  function take(packet: Packet): void {
    const { kind, payload } = packet;
    try {
      if (kind === 'GUILD_DELETE') logRemoval(listener, payload);
      if (maySayMore(listener, kind, payload)) api.forbidden.lift();
      directory.note(kind, payload);
      if (kind === 'READY') {
        noteLogin(listener, payload);
        catchUp.begin();
      }
      if (kind === 'THREAD_LIST_SYNC') catchUp.noteThreads(payload);
      if (kind === 'GUILD_CREATE' || kind === 'GUILD_DELETE') catchUp.noteGuild();
      if (kind === 'MESSAGE_CREATE') noteMessage(listener, payload);
      const room = idOf(fieldsOf<Discord.APIMessage>(payload).channel_id);
      if (!STORED.has(kind) || room === undefined) return;
      if (kind === 'INTERACTION_CREATE') noteInteraction(listener, fieldsOf(payload), eventOf(kind, payload));
      session.came(packet);
      lanes.add(room, () => pass(packet, room));
    } catch (error) {
      log.error({ channel: 'discord', kind, reason: describe(error) }, 'Discord event was skipped');
    }
  }

  async function pass(packet: Packet, room: string): Promise<void> {
    const { kind, payload } = packet;
    try {
      const guildId = idOf(fieldsOf<{ guild_id: string }>(payload).guild_id);
      if (guildId !== undefined && lookup.isNeeded(kind, room, guildId)) await lookup.find(room, guildId);
      const event = eventOf(kind, payload);
      if (event === null || isRepeated(event)) session.done([packet]);
      else void queue.add([event], packet);
    } catch (error) {
      // An unreadable event must not keep the others from being stored.
      session.done([packet]);
      log.error({ channel: 'discord', kind, reason: describe(error) }, 'Discord event was skipped');
    }
  }

  /** Discord repeats an edited message when it gets a preview or is pinned. */
  function isRepeated(event: InboundEvent): boolean {
    if (event.kind !== 'edit') return false;
    const edit = `${event.platformMessageId}/${event.editedAt}`;
    const isKnown = edited.has(edit);
    edited.set(edit, true);
    return isKnown;
  }

  async function run(): Promise<void> {
    await session.load().catch((error) => {
      log.warn(
        { channel: 'discord', reason: describe(error) },
        'reading the Discord session failed; beginning a new one',
      );
    });
    const told = tellPrivateThreads(missed, host.state, signal);
    await connection.run(signal);
    await told;
    await queue.idle();
    await catchUp.idle();
    await session.keep();
  }

  return {
    /** Resolves when intake has ended, and received events are stored. Never rejects. */
    done: run(),
    fail: connection.fail,
  };
}

/** Whether the bot may have gained permissions. It sees only its own member events. */
function maySayMore({ identity }: DiscordListener, kind: string, payload: unknown): boolean {
  if (kind !== 'GUILD_MEMBER_UPDATE') return CHANGES_OF_RIGHTS.test(kind);
  return (
    fieldsOf<Discord.APIUser>(fieldsOf<{ user: Discord.APIUser }>(payload).user).id === identity.known()?.id
  );
}

function noteMessage({ identity, resends, api }: DiscordListener, payload: unknown): void {
  const message = fieldsOf<Discord.APIMessage & { guild_id: string }>(payload);
  const authorId = idOf(fieldsOf<Discord.APIUser>(message.author).id);
  const room = idOf(message.channel_id);
  if (authorId !== undefined && authorId === identity.known()?.id) resends.noteEcho(payload);
  else if (room !== undefined && idOf(message.guild_id) === undefined) api.forbidden.liftIn(room);
}

function noteLogin({ identity, log }: DiscordListener, payload: unknown): void {
  const told = fieldsOf<Discord.GatewayReadyDispatchData>(payload);
  const application = fieldsOf<Discord.GatewayReadyDispatchData['application']>(told.application);
  const me = identity.note(told.user, idOf(application.id));
  log.info({ channel: 'discord', bot: me?.name, servers: itemsOf(told.guilds).length }, 'logged in');
  const flags = numberOf(application.flags);
  if (flags !== undefined && !mayReadContent(flags)) log.warn({ channel: 'discord' }, NO_CONTENT);
}

function logRemoval({ directory, log }: DiscordListener, payload: unknown): void {
  const told = fieldsOf<Discord.APIGuild & { unavailable: boolean }>(payload);
  const id = idOf(told.id);
  if (id === undefined || told.unavailable === true) return;
  log.warn(
    { channel: 'discord', server: directory.guildName(id) ?? id, id },
    'bot was removed from a server',
  );
}

/** From now on, Discord shows the person that it waits. */
function noteInteraction(
  listener: DiscordListener,
  told: Fields<Discord.APIInteraction>,
  event: InboundEvent | null,
): void {
  const { answers, presses, uploads } = listener;
  const most = numberOf(told.attachment_size_limit);
  const room = idOf((told as { channel_id?: unknown }).channel_id);
  if (most !== undefined && room !== undefined) uploads.note(room, most);
  const [id, token, applicationId] = [idOf(told.id), textOf(told.token), idOf(told.application_id)];
  if (id === undefined || token === undefined || applicationId === undefined || room === undefined) return;
  const interaction = { id, token, applicationId };
  const type: unknown = told.type;
  if (type === Discord.InteractionType.ApplicationCommandAutocomplete)
    void suggest(listener, interaction, told, room);
  if (event?.kind === 'choice') presses.open(interaction);
  if (event?.kind !== 'message') return;
  const { address, within } = event.chat;
  answers.open(
    interaction,
    platformId('discord', address),
    within === undefined ? null : platformId('discord', within),
  );
}

/** Suggests personas' names while one is being typed. Without an answer, people type the name themselves. */
async function suggest(
  { api, host, directory, log }: DiscordListener,
  { id, token }: Interaction,
  told: Fields<Discord.APIInteraction>,
  room: string,
): Promise<void> {
  const typed = beingTyped(fieldsOf<Discord.APIChatInputApplicationCommandInteractionData>(told.data));
  if (typed === null) return;
  try {
    const place = placeOf(directory, room, idOf(told.guild_id), fieldsOf(told.channel));
    const data = { choices: choices(await host.personaNames(place.address), typed) };
    const body = { type: Discord.InteractionResponseType.ApplicationCommandAutocompleteResult, data };
    await api.call({ method: 'POST', path: `/interactions/${id}/${token}/callback`, body, anonymous: true });
  } catch (error) {
    log.debug({ channel: 'discord', reason: failureOf(error).reason }, 'suggesting personas failed');
  }
}
