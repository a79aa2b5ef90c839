/** Creates the channels of the configured platforms and of the terminal. Each library is loaded only with its channel. */
import { randomUUID } from 'node:crypto';
import { homedir, userInfo } from 'node:os';
import { join } from 'node:path';
import { createBoardChannel } from './channels/board/channel.js';
import type { ChannelDescriptor } from './channels/kit/descriptor.js';
import { withSpeakerName } from './channels/kit/outgoing.js';
import { CHANNELS } from './channels/list.js';
import type { Config } from './config.js';
import type { Desk } from './core/board.js';
import type { Channel, ChannelState } from './core/channel.js';
import { systemClock } from './core/clock.js';
import { describe } from './core/errors.js';
import { platformId } from './core/ids.js';
import { type Audit, GATEWAY } from './core/journal.js';
import type { Log } from './core/log.js';
import { channelLease, type Leases } from './core/node.js';
import type { Personas, Portraits } from './core/persona.js';
import type { Store } from './core/store.js';
import { createOutward } from './network/outward.js';
import { foldersOf } from './paths.js';

interface Lent {
  store: Store;
  /** Absent: no gateway runs. */
  leases?: Leases;
  /** Further connections are shared with other gateways. */
  spread?: boolean;
  personas: Personas;
  /** Absent: nobody is to speak. */
  portraits?: Portraits;
  audit: { note: Audit['note'] };
  log: Log;
  /** Prints a picture made of characters (a QR code) to the terminal. */
  show(picture: string): void;
  /** The code to be scanned that links a platform; null: linked. */
  linking?(code: string | null): void;
}

type PlatformName = (typeof CHANNELS)[number]['name'];

export const PLATFORMS: readonly PlatformName[] = CHANNELS.map(({ name }) => name);

/** All configured platforms, in start order. */
export async function createPlatforms(config: Config, lent: Lent): Promise<Channel[]> {
  const channels: Channel[] = [];
  for (const name of PLATFORMS) {
    const channel = await createPlatform(name, config, lent);
    if (channel !== null) channels.push(channel);
  }
  return channels;
}

/** null if it is not configured. */
export async function createPlatform(
  platform: PlatformName,
  { channels, network }: Config,
  { store, leases, spread, personas, portraits, audit, log, show, linking = () => {} }: Lent,
): Promise<Channel | null> {
  const descriptor: ChannelDescriptor | undefined = CHANNELS.find(({ name }) => name === platform);
  const options = channels[platform];
  if (descriptor === undefined || options === null) return null;
  return descriptor.create({
    options,
    ...(spread && { spread }),
    outward: createOutward(network.proxies),
    state: stateOf(store, platform, leases),
    cursor: async (account) => (await store.values({ cursorsOf: platform }, [account])).get(account) ?? null,
    newest: async () => (await store.newest(platform)).heard,
    recorded: async () => Object.values(await store.newest(platform)).flat(),
    async sentPart(key) {
      const sent = await store.delivery(key);
      // The file of a voice note is deleted by now, and a reaction is not a message.
      if (sent === null || sent.body.speech || sent.body.reaction) return null;
      return withSpeakerName(sent.body, { appearance: sent.appearance, leads: sent.part === 0 });
    },
    async personaNames(chat) {
      const present = await personas.list(platformId(platform, chat));
      return present.map(({ name }) => name);
    },
    async portrait(chat, personaId) {
      if (portraits === undefined) return null;
      if (chat === null) return portraits.shared(personaId);
      try {
        const id = platformId(platform, chat);
        const persona = await personas.get(id, personaId);
        if (persona !== null) return await portraits.of(persona);
        // A chat that moved keeps the folder of its first id.
        const first = await store.aliasOf(id);
        const there = first === null ? null : await personas.get(first, personaId);
        return there && (await portraits.of(there));
      } catch (error) {
        log.warn({ channel: platform, persona: personaId, error: describe(error) }, 'portrait was not found');
        return null;
      }
    },
    linking,
    noteLink(number) {
      linking(null);
      const what = `this gateway was linked to ${number} on ${platform}`;
      void audit.note({ kind: 'link', who: GATEWAY, where: null, what, word: null });
    },
    show,
    clock: systemClock,
    newId: randomUUID,
    log,
  });
}

export type Links = ReturnType<typeof createLinks>;

/** The code that links WhatsApp, while one is shown. */
export function createLinks() {
  let shown: { n: number; text: string } | null = null;
  let n = 0;
  return {
    now: () => shown,
    show(text: string | null): void {
      n += 1;
      shown = text === null ? null : { n, text };
    },
  };
}

/**
 * A channel's notes in the store. Once a gateway has held the channel, it notes nothing after another one has taken it:
 * the keys of two WhatsApp sessions would mix.
 */
export function stateOf(store: Store, channel: string, leases?: Leases): ChannelState {
  const lease = channelLease(channel);
  let fence: number | null = null;
  const under = () => {
    fence = leases?.fenceOf(lease) ?? fence;
    return fence === null ? undefined : { lease, fence };
  };
  return {
    get: (names) => store.values({ stateOf: channel }, names),
    set: (values) => store.setValues({ stateOf: channel }, values, under()),
    clear: () => store.setValues({ stateOf: channel }, null, under()),
  };
}

/** The page of the board: it needs no configuration, and is no platform that could be away. */
export function createBoard(config: Config): Channel & Desk {
  return createBoardChannel({
    folder: foldersOf(config).board,
    userName: userName(),
    clock: systemClock,
    newId: randomUUID,
  });
}

export interface TerminalSettings {
  interactive: boolean;
  onEnd(failure: unknown): void;
  /** Lets the prompt write the log, so that log lines do not disturb what is being typed. */
  lendTo(interject: (write: () => void) => void): void;
}

/** The terminal chat: a channel on this process's stdin and stdout. */
export async function createTerminalChannel(
  config: Config,
  wishes: TerminalSettings,
  log: Log,
): Promise<Channel> {
  const { createTerminal } = await import('./channels/terminal/channel.js');
  const terminal = createTerminal({
    input: process.stdin,
    output: process.stdout,
    interactive: wishes.interactive,
    colours: process.stdout.isTTY === true && process.stdout.hasColors(),
    userName: userName(),
    historyFile: join(config.dataDir, 'terminal-history'),
    clock: systemClock,
    newId: randomUUID,
    log,
    onEnd: wishes.onEnd,
  });
  wishes.lendTo(terminal.interject);
  return terminal;
}

/** A container's user may have no name. */
export function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return homedir().split(/[/\\]/).at(-1) || 'you';
  }
}
