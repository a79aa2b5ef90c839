/** The parts of Discord's channel, which `listen.ts` and `send.ts` use, and those of each shard. */
import type { ChannelHost } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import type { Log } from '../../core/log.js';
import { createState } from '../kit/supervise.js';
import { createApi } from './api.js';
import { Directory, Identity } from './directory.js';
import { Faces } from './faces.js';
import { createUploads } from './files.js';
import { HandedOver } from './handed-over.js';
import { Answers, Presses } from './interactions.js';
import type { DiscordOptions } from './options.js';
import { createResends } from './resend.js';
import { GatewaySession } from './session.js';
import { Seat, Shards } from './shards.js';
import { createQuotes, Webhooks } from './webhooks.js';

export type DiscordParts = ReturnType<typeof createParts>;

export function createParts(host: ChannelHost<DiscordOptions>) {
  const { options, clock, log } = host;
  const api = createApi(options, host);
  const base = { api, clock, log };
  const identity = new Identity(base);
  /** The shards that are connected from here. */
  const running = new Map<number, Running>();
  const isHeard = (guildId: string | null) => [...running.values()].some(({ hears }) => hears(guildId));
  const directory = new Directory(host.spread ? { clock, isHeard } : null);
  const shards = new Shards(host);
  const handedOver = new HandedOver(host, shards);
  const faces = new Faces(base, host);
  const webhooks = new Webhooks(base, identity, directory, faces);
  const resends = createResends(base, identity, webhooks);
  return {
    ...base,
    host,
    options,
    identity,
    directory,
    faces,
    webhooks,
    resends,
    shards,
    handedOver,
    answers: new Answers(base, resends, handedOver),
    presses: new Presses(base),
    quotes: createQuotes(base, directory),
    uploads: createUploads(directory),
    states: [createStates(clock)],
    running,
  };
}

interface Running {
  hears(guildId: string | null): boolean;
  fail(reason: string): void;
}

/** Of a shard: the state of its connection, and of storing. */
function createStates(clock: Clock) {
  const states = { connecting: createState(clock), storing: createState(clock) };
  states.storing.up();
  return states;
}

export type ShardParts = ReturnType<typeof createShardParts>;

export function createShardParts(parts: DiscordParts, shard: number) {
  const { host, identity, shards, states, clock } = parts;
  const seat = new Seat(shard, shards);
  const ofShard = states[shard] ?? createStates(clock);
  states[shard] = ofShard;
  const log = withShard(host.log, seat);
  return { ...parts, ...ofShard, log, seat, session: new GatewaySession(host, identity, seat) };
}

/** Of several, each tells in the log which it is. */
function withShard(log: Log, seat: Seat): Log {
  const told = (fields: object) => (seat.count === 1 ? fields : { ...fields, shard: seat.shard });
  return {
    debug: (fields, message) => log.debug(told(fields), message),
    info: (fields, message) => log.info(told(fields), message),
    warn: (fields, message) => log.warn(told(fields), message),
    error: (fields, message) => log.error(told(fields), message),
  };
}
