/** The platforms that are configured. Each one's library is loaded only here, and only then. */
import { randomUUID } from 'node:crypto';
import { named } from './channels/named.js';
import type { Config } from './config.js';
import type { Channel } from './core/channel.js';
import { systemClock } from './core/clock.js';
import { platformId } from './core/ids.js';
import type { Log } from './core/log.js';
import type { Personas } from './core/persona.js';
import type { Store } from './core/store.js';

export interface PlatformParts {
  config: Config;
  store: Store;
  personas: Personas;
  log: Log;
  /** A picture made of characters, for whoever looks at the terminal. */
  show(picture: string): void;
}

/** What is on the same clock, and makes ids in the same way, everywhere. */
const common = { clock: systemClock, newId: randomUUID };

export async function createTelegramChannel({
  config,
  store,
  log,
}: Omit<PlatformParts, 'show' | 'personas'>) {
  const options = config.channels.telegram;
  if (!options) return null;
  const { createTelegram } = await import('./channels/telegram/channel.js');
  return createTelegram({
    ...{ options, log, clock: systemClock },
    initialCursor: (account) => store.cursor('telegram', account),
    wantsQuietListening: options.access.groups !== 'closed',
  });
}

export async function createDiscordChannel({ config, store, personas, log }: Omit<PlatformParts, 'show'>) {
  const options = config.channels.discord;
  if (!options) return null;
  const { createDiscord } = await import('./channels/discord/channel.js');
  return createDiscord({
    ...{ ...common, options, log },
    newest: () => store.newest('discord'),
    state: channelState(store, 'discord'),
    initialCursor: (account) => store.cursor('discord', account),
    personaNames: async (chat) => {
      const present = await personas.list(platformId('discord', chat));
      return present.map(({ name }) => name);
    },
  });
}

export async function createWhatsAppChannel({ config, store, log, show }: Omit<PlatformParts, 'personas'>) {
  const options = config.channels.whatsapp;
  if (!options) return null;
  const { createWhatsApp } = await import('./channels/whatsapp/channel.js');
  return createWhatsApp({
    ...{ ...common, options, log },
    state: whatsAppState(store),
    initialCursor: (account) => store.cursor('whatsapp', account),
    async sentPart(key) {
      const sent = await store.delivery(Number(key));
      return sent === null ? null : named(sent.body, { face: sent.face, leads: sent.part === 0 });
    },
    onQr(text) {
      log.info({ channel: 'whatsapp' }, `whatsapp qr: ${text}`);
      drawQr(text).then(show, (error) => log.warn({ err: error }, 'the QR code could not be drawn'));
    },
  });
}

/** What the WhatsApp channel keeps in the store. */
export function whatsAppState(store: Store) {
  return channelState(store, 'whatsapp');
}

/** What a channel keeps in the store for itself. */
function channelState(store: Store, channel: string) {
  return {
    get: (names: string[]) => store.channelState(channel, names),
    set: (values: ReadonlyMap<string, string | null>) => store.setChannelState(channel, values),
    clear: () => store.clearChannelState(channel),
  };
}

async function drawQr(text: string): Promise<string> {
  const { default: qrcode } = await import('qrcode');
  return qrcode.toString(text, { type: 'terminal', small: true });
}

/** In the order in which they begin. */
export async function createPlatforms(parts: PlatformParts) {
  const telegram = await createTelegramChannel(parts);
  const discord = await createDiscordChannel(parts);
  const whatsapp = await createWhatsAppChannel(parts);
  const all: Channel[] = [telegram, discord, whatsapp].filter((channel) => channel !== null);
  return { all, webhook: telegram?.webhook };
}
