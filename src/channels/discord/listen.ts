/** Handles each event of the gateway, from the start of the channel to its end. */
import * as Discord from 'discord-api-types/v10';
import { LRUCache } from 'lru-cache';
import type { Receive, Reception } from '../../core/channel.js';
import { onAbort } from '../../core/clock.js';
import { createMutex, locks } from '../../core/concurrency.js';
import { describe } from '../../core/errors.js';
import type { InboundEvent } from '../../core/message.js';
import { backoffMs } from '../kit/supervise.js';
import { CatchUp, tellPrivateThreads } from './catch-up.js';
import { createConnection } from './connection.js';
import { createLookup, placeOf } from './directory.js';
import { failureOf, MOST_NOTED } from './failure.js';
import { inbound } from './inbound.js';
import { beingTyped, choices } from './outbound.js';
import { createShardParts, type DiscordParts, type ShardParts } from './parts.js';
import { fieldsOf, hasFlag, idOf, listOf, type ToldInteraction } from './payload.js';
import type { Packet } from './session.js';

const MESSAGE_CONTENT =
  Discord.ApplicationFlags.GatewayMessageContent | Discord.ApplicationFlags.GatewayMessageContentLimited;

export const NO_CONTENT =
  'the intent Message Content is off, so Discord does not let the bot in: tick it at discord.com/developers/applications, on the page Bot, under Privileged Gateway Intents';

export function mayReadContent(flags: unknown): boolean {
  return hasFlag(flags, MESSAGE_CONTENT);
}

/** Keeps a transaction from delaying others. */
const MOST_AT_ONCE = 100;

interface Item {
  events: InboundEvent[];
  /** null: they were fetched. */
  packet: Packet | null;
}

/**
 * Passes events to step 1 of the route, in order and one batch at a time: at once if nothing is being stored,
 * else together with those that follow. Failed batches are retried, and everything behind them waits.
 */
function createQueue(parts: ShardParts, receive: Receive, signal: AbortSignal) {
  const { identity, answers, presses, session, seat, storing, clock, log } = parts;
  const waiting: Item[] = [];
  const inTurn = createMutex();

  /** Called once per item, and takes at least one: an item is stored when its own call returns. */
  async function storeNext(): Promise<void> {
    // Fetched events are already one batch.
    const fetched = waiting.findIndex(({ packet }) => packet === null);
    const live = fetched === -1 ? waiting.length : fetched;
    const batch = waiting.splice(0, Math.min(Math.max(1, live), MOST_AT_ONCE));
    if (batch.length === 0) return;
    const reception = await store(batch);
    for (const { platformMessageId, why } of reception?.rejected ?? []) {
      void answers.turnAway(platformMessageId, why);
    }
    for (const [id, became] of reception?.choices ?? []) presses.settle(id, became);
  }

  /** null when the channel stops before it is stored. */
  async function store(batch: Item[]): Promise<Reception | null> {
    const packets = batch.flatMap(({ packet }) => packet ?? []);
    for (let failures = 0; !signal.aborted; failures += 1) {
      try {
        const cursor = session.cursorAfter(packets);
        const account = identity.me?.id ?? '';
        const reception = await receive({
          channel: 'discord',
          account,
          events: batch.flatMap(({ events }) => events),
          piledUp: batch.some(({ packet }) => packet === null || packet.isReplay),
          ...(cursor === undefined ? {} : { cursor, cursorFor: seat.key(account) }),
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
    async add(events: InboundEvent[], packet: Packet | null): Promise<void> {
      if (events.length === 0) return;
      waiting.push({ events, packet });
      await inTurn(storeNext);
    },
    /** Resolves when nothing is being stored. */
    idle: () => inTurn(() => {}),
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

/** All shards of this gateway, from the start of the channel to its end. Never rejects. */
export async function listen(parts: DiscordParts, receive: Receive, signal: AbortSignal): Promise<void> {
  const { host, shards, log } = parts;
  await shards.load().catch((error) => {
    log.warn({ channel: 'discord', reason: describe(error) }, 'reading the number of Discord shards failed');
  });
  const listening = [listenTo(parts, 0, receive, signal)];
  while (!signal.aborted) {
    await shards.known(signal);
    const here = host.spread ? 1 : (shards.count ?? 1);
    while (listening.length < here) listening.push(listenTo(parts, listening.length, receive, signal));
    await new Promise<void>((resolve) => onAbort(AbortSignal.any([signal, shards.round]), resolve));
  }
  await Promise.all(listening);
}

/** One shard. Resolves when intake has ended, and received events are stored. Never rejects. */
export async function listenTo(
  parts: DiscordParts,
  shard: number,
  receive: Receive,
  signal: AbortSignal,
): Promise<void> {
  const { shards, running } = parts;
  while (!signal.aborted) {
    const of = createShardParts(parts, shard);
    const { done, fail } = listenOn(of, receive, AbortSignal.any([signal, shards.round]));
    running.set(shard, { hears: of.seat.hears, fail });
    await done;
  }
  running.delete(shard);
}

function listenOn(parts: ShardParts, receive: Receive, signal: AbortSignal) {
  const { host, api, identity, session, directory, seat, log } = parts;
  const queue = createQueue(parts, receive, signal);
  const lookUp = createLookup(parts, directory, signal);
  /** Events are sequential within a room, parallel across rooms. */
  const inTurn = locks();
  const edited = new LRUCache<string, true>({ max: MOST_NOTED });
  const catchUpParts = { ...parts, eventOf, store: (events: InboundEvent[]) => queue.add(events, null) };
  const catchUp = new CatchUp(catchUpParts, signal);
  const connection = createConnection(parts, take);

  function eventOf(kind: string, payload: unknown): InboundEvent | null {
    const me = identity.me;
    if (me === null) return null;
    const { bots } = host.options;
    try {
      const event = inbound(kind, payload, { me, directory, bots, isOurWebhook: parts.webhooks.isOurs });
      if (event?.kind === 'message') parts.quotes.note(event);
      return event;
    } catch (error) {
      skipped(kind, error);
      return null;
    }
  }

  function skipped(kind: string, error: unknown): void {
    log.error({ channel: 'discord', kind, reason: describe(error) }, 'Discord event was skipped');
  }

  /** The library calls it, so it must not throw. */
  function take(packet: Packet): void {
    const { kind, payload } = packet;
    session.reach(packet);
    try {
      if (kind === 'GUILD_DELETE') logRemoval(parts, payload);
      if (maySayMore(parts, kind, payload)) api.forbidden.lift();
      directory.note(kind, payload, seat);
      if (kind === 'READY') {
        noteLogin(parts, payload);
        catchUp.begin();
      }
      if (kind === 'THREAD_LIST_SYNC') catchUp.noteThreads(payload);
      if (kind === 'GUILD_CREATE' || kind === 'GUILD_DELETE') catchUp.noteGuild();
      if (kind === 'MESSAGE_CREATE') noteMessage(parts, payload);
      const room = idOf(fieldsOf<Discord.APIMessage>(payload).channel_id);
      if (!STORED.has(kind) || room === undefined) return;
      if (kind === 'INTERACTION_CREATE') {
        const event = eventOf(kind, payload);
        noteInteraction(parts, fieldsOf(payload), event);
        if (event === null) return;
        if (event.kind === 'message') void parts.answers.handOver(event.platformMessageId, seat.shard);
      }
      session.came(packet);
      void inTurn(room, () => pass(packet, room));
    } catch (error) {
      skipped(kind, error);
    }
  }

  /** Never rejects. */
  async function pass(packet: Packet, room: string): Promise<void> {
    const { kind, payload } = packet;
    await catchUp.ready(room);
    if (kind === 'INTERACTION_CREATE') await parts.handedOver.written();
    const guildId = idOf(fieldsOf<{ guild_id: string }>(payload).guild_id);
    if (guildId !== undefined) await lookUp(kind, room, guildId);
    const event = eventOf(kind, payload);
    // An unreadable event must not keep the others from being stored.
    if (event === null || isRepeated(event)) session.done([packet]);
    else void queue.add([event], packet);
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
      const reason = describe(error);
      log.warn({ channel: 'discord', reason }, 'reading the Discord session failed; beginning a new one');
    });
    const told = seat.shard === 0 ? tellPrivateThreads(catchUpParts, signal) : null;
    await connection.run(signal);
    await told;
    await queue.idle();
    await catchUp.idle();
    await session.keep();
  }

  return { done: run(), fail: connection.fail };
}

/** Whether the bot may have gained permissions. It sees only its own member events. */
function maySayMore({ identity }: DiscordParts, kind: string, payload: unknown): boolean {
  if (kind !== 'GUILD_MEMBER_UPDATE') return CHANGES_OF_RIGHTS.test(kind);
  return fieldsOf<Discord.APIGuildMember>(payload).user?.id === identity.me?.id;
}

function noteMessage({ identity, resends, api }: DiscordParts, payload: unknown): void {
  const message = fieldsOf<Discord.GatewayMessageCreateDispatchData>(payload);
  if (message.author?.id === identity.me?.id) resends.noteEcho(message);
  else if (message.channel_id && !message.guild_id) api.forbidden.liftIn(message.channel_id);
}

function noteLogin({ identity, log }: DiscordParts, payload: unknown): void {
  const { application, user, guilds } = fieldsOf<Discord.GatewayReadyDispatchData>(payload);
  const me = identity.note(user, application?.id);
  log.info({ channel: 'discord', bot: me?.name, servers: listOf(guilds).length }, 'logged in');
  if (application?.flags !== undefined && !mayReadContent(application.flags)) {
    log.warn({ channel: 'discord' }, NO_CONTENT);
  }
}

function logRemoval({ directory, log }: DiscordParts, payload: unknown): void {
  const { id, unavailable } = fieldsOf<Discord.APIUnavailableGuild>(payload);
  if (!id || unavailable === true) return;
  const server = directory.guildName(id) ?? id;
  log.warn({ channel: 'discord', server, id }, 'bot was removed from a server');
}

/** From now on, Discord shows the person that it waits. */
function noteInteraction(parts: DiscordParts, told: ToldInteraction, event: InboundEvent | null): void {
  const { id, token, application_id, channel_id: room, attachment_size_limit: most } = told;
  if (!id || !token || !application_id || !room) return;
  if (most) parts.uploads.note(room, most);
  const interaction = { id, token, application_id };
  if (told.type === Discord.InteractionType.ApplicationCommandAutocomplete) void suggest(parts, told, room);
  if (event?.kind === 'choice') parts.presses.open(interaction);
  if (event?.kind === 'message') parts.answers.open(interaction, event.chat);
}

/** Suggests personas' names while one is being typed. Without an answer, people type the name themselves. */
async function suggest(parts: DiscordParts, told: ToldInteraction, room: string): Promise<void> {
  const { api, host, directory, log } = parts;
  const { id, token, data, channel } = told;
  const typed = beingTyped(fieldsOf<Discord.APIChatInputApplicationCommandInteractionData>(data));
  if (typed === null) return;
  try {
    const place =
      directory.place(room) ?? placeOf({ ...fieldsOf<Discord.APIThreadChannel>(channel), id: room });
    const found = { choices: choices(await host.personaNames(place.address), typed) };
    const body = { type: Discord.InteractionResponseType.ApplicationCommandAutocompleteResult, data: found };
    await api.call({ method: 'POST', path: `/interactions/${id}/${token}/callback`, body, anonymous: true });
  } catch (error) {
    log.debug({ channel: 'discord', reason: failureOf(error).reason }, 'suggesting personas failed');
  }
}
