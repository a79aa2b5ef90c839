/**
 * Discord on loopback: the API, the gateway and the files behind one port. Guilds, direct chats, threads and slash
 * commands, with Discord's limits, and faults on command. It keeps a ledger of what it took, and whether the
 * connection was cut between taking a message and answering; so a test can tell which reply may stand twice.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { createCdn } from './discord-cdn.js';
import { createFaults } from './discord-faults.js';
import { createGateway } from './discord-gateway.js';
import { createInteractions } from './discord-interactions.js';
import { createLedger } from './discord-ledger.js';
import { createMessages } from './discord-messages.js';
import { userOf, wholeGuildOf } from './discord-payloads.js';
import { createPeople } from './discord-people.js';
import { createReactions } from './discord-reactions.js';
import { createRest } from './discord-rest.js';
import { createRoutes } from './discord-routes.js';
import { isOn, type Shard } from './discord-shards.js';
import { createSnowflakes } from './discord-snowflake.js';
import { createWebhooks } from './discord-webhooks.js';
import type { FakeDiscord, FakeDiscordEvent, Settings } from './discord-words.js';
import { createWorld } from './discord-world.js';
import { breakOff, listenAt } from './http-server.js';
import { createWatch } from './watch.js';

interface FakeDiscordOptions {
  token?: string;
  answerDelayMs?: number;
  /** What its ids are made of, and what its limits in time are held against. */
  now?: () => number;
}

export async function startFakeDiscord(options: FakeDiscordOptions = {}): Promise<FakeDiscord> {
  const { token = 'fake.token.of-the-fake-discord', answerDelayMs = 0, now = Date.now } = options;
  const bot = { id: '424242424242424242', username: 'Coterie', bot: true as const };
  const settings: Settings = {
    answerDelayMs,
    heartbeatMs: 41_250,
    nonceMemoryMs: 5 * 60_000,
    sessionMemoryMs: 2 * 60_000,
    identifiesPerDay: 1_000,
    shards: 1,
    maxConcurrency: 1,
    identifyEveryMs: 5_000,
    guildsPerShard: 2_500,
    interactionAnswerMs: 3_000,
    interactionTokenMs: 15 * 60_000,
    noncesInHistory: false,
    messageContentGranted: true,
    bucket: { limit: 100_000, windowMs: 1_000 },
    forbiddenNames: [],
    refusedAvatars: [],
    uploadBytes: null,
  };
  const { look, until } = createWatch('the fake Discord');
  const { next: newId } = createSnowflakes(now);
  const sockets = new Set<Socket>();
  const listeners: ((event: FakeDiscordEvent) => void)[] = [];
  const commandIds = new Map<string, string>();
  let port = 0;

  function happened(event: FakeDiscordEvent): void {
    for (const listener of listeners) listener(event);
  }
  /** A command keeps its id when the set is put anew. */
  function commandId(name: string): string {
    const id = commandIds.get(name) ?? newId();
    commandIds.set(name, id);
    return id;
  }

  const world = createWorld(bot);
  const guildsOn = (shard: Shard) =>
    [...world.guilds.values()].filter(({ id, left }) => !left && isOn(shard, id));
  const cdn = createCdn(() => `http://127.0.0.1:${port}/cdn`, newId);
  const faults = createFaults(settings, now);
  const ledger = createLedger({ now, onTaken: () => happened('sent'), look });
  const gateway = createGateway({
    token,
    botId: bot.id,
    settings,
    newId,
    now,
    look,
    onSession: () => happened('session'),
    onReplay: () => happened('replay'),
    guildsOn: (shard) => guildsOn(shard).length,
    greeting(shard) {
      const guilds = guildsOn(shard);
      return {
        ready: {
          v: 10,
          user: userOf(bot),
          private_channels: [],
          user_settings: {},
          relationships: [],
          guilds: guilds.map(({ id }) => ({ id, unavailable: true })),
          resume_gateway_url: `ws://127.0.0.1:${port}`,
          application: { id: bot.id, flags: settings.messageContentGranted ? 1 << 19 : 0 },
        },
        guilds: guilds
          .filter(({ unavailable }) => !unavailable)
          .map((guild) => ({ name: 'GUILD_CREATE', data: wholeGuildOf(guild, world) })),
      };
    },
  });
  const { dispatch } = gateway;
  const people = createPeople({ world, newId, now, dispatch });
  const messages = createMessages({ world, ledger, cdn, settings, newId, now, dispatch });
  const interactions = createInteractions({
    world,
    messages,
    ledger,
    settings,
    newId,
    now,
    commandId,
    dispatch,
  });
  const webhooks = createWebhooks({ world, messages, settings, newId });
  const reactions = createReactions(world);
  const routes = createRoutes({
    reactions,
    world,
    messages,
    interactions,
    webhooks,
    cdn,
    settings,
    commandId,
    onHistory: () => happened('history'),
    gatewayUrl: () => `ws://127.0.0.1:${port}`,
    sessionsLeft: gateway.sessionsLeft,
    dmWith(userId) {
      const user = world.users.get(userId);
      return user === undefined ? null : people.dm(user);
    },
  });
  const rest = createRest({
    token,
    isTokenReset: gateway.isTokenReset,
    routes: routes.all,
    ledger,
    faults,
    settings,
    now,
    look,
  });

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://127.0.0.1');
    if (pathname.startsWith('/cdn/')) cdn.serve(pathname.slice(5), searchParams, response);
    else await rest.serve(pathname.replace(/^\/api(?=\/)/, ''), searchParams, request, response);
    look();
  }

  const server = createServer((request, response) => {
    serve(request, response).catch(breakOff(request));
  });
  // Node's five seconds would cut connections that a quiet client keeps.
  server.keepAliveTimeout = 120_000;
  server.on('upgrade', (request, socket, head) => gateway.upgrade(request, socket, head));
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
  });

  function hangUp(what: 'gateway' | 'everything' = 'gateway'): void {
    gateway.hangUp();
    if (what === 'everything') for (const socket of sockets) socket.destroy();
  }

  function shut(): Promise<void> {
    return new Promise((resolve) => {
      server.close(() => resolve());
      hangUp('everything');
    });
  }

  await listenAt(server, 0);
  port = (server.address() as AddressInfo).port;

  return {
    url: `http://127.0.0.1:${port}/api`,
    token,
    bot,
    applicationId: bot.id,
    settings,
    calls: rest.calls,
    invalid: rest.invalid,
    sent: ledger.sent,
    links: messages.links,
    reactions: reactions.all,
    typing: routes.typing,
    commands: routes.commands,
    ...people,
    ...webhooks.byPeople,
    command: (invocation) => interactions.begin('command', invocation),
    press: interactions.press,
    again: interactions.again,
    autocomplete: (invocation) => interactions.begin('autocomplete', invocation),
    attachment: (name, bytes, type = null, more) => cdn.add(name, bytes, type, more),
    expireLinks: cdn.expireLinks,
    fetched: ({ id }) => cdn.fetched(id),
    dispatch: (name, data) => dispatch({ name, data }),

    closeAll: gateway.closeAll,
    reconnect: gateway.reconnect,
    refuseBeforeHello: gateway.refuseBeforeHello,
    invalidate: gateway.invalidate,
    invalidateAfterResume: gateway.invalidateAfterResume,
    invalidateIdentifies: gateway.invalidateIdentifies,
    fallSilent: gateway.fallSilent,
    muteHeartbeats: gateway.muteHeartbeats,
    refuseIdentify: gateway.refuseIdentify,
    sessions: gateway.sessions,

    fail: faults.fail,
    rateLimit: faults.rateLimit,
    heal() {
      faults.heal();
      gateway.heal();
    },
    callsTo: (method, path) => rest.calls.filter((call) => call.method === method && path.test(call.path)),
    onEvent: (listener) => void listeners.push(listener),

    until,
    hangUp,
    shut,
    open: () => listenAt(server, port),
    close: shut,
  };
}
