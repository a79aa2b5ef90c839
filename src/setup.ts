/** Sets up the gateway step by step, for the page of the board and for `coterie setup`. */
import type { Config } from './config.js';
import type { ByWhom, ConfigWriter } from './config-write.js';
import type { Channel } from './core/channel.js';
import { type Clock, OVER } from './core/clock.js';
import { describe, Fault } from './core/errors.js';
import type { Audit } from './core/journal.js';
import type { Log } from './core/log.js';
import type { Personas } from './core/persona.js';
import type {
  ChannelSetup,
  ModelWish,
  Saved,
  Setup,
  SetupState,
  TokenPlatform,
  Tried,
} from './core/setup.js';
import { putSetting, type Store, settingOf } from './core/store.js';
import { createOutward } from './network/outward.js';
import { createRedactor } from './operating/redact.js';
import type { KeyChange } from './operating/yaml-edit.js';
import { createPlatform, type Links } from './platforms.js';
import { secretsOf } from './secrets.js';
import { findServers, refuseLinkLocal, tryServer, USUAL_PORTS } from './setup-servers.js';

export interface SetupParts {
  config: Config;
  writer: ConfigWriter;
  audit: Audit;
  store: Store;
  personas: Personas;
  /** Of the running gateway. */
  serving: readonly Channel[];
  heldBy(channel: string): string | null;
  links: Links;
  /** The file was changed; the gateway takes it in. */
  takeIn(): void;
  /** Who sets up, for the audit log. */
  who: ByWhom;
  clock: Clock;
  ports?: Record<string, number>;
}

/** The setting that says how somebody left the setup. */
const LEFT = 'setup.left';
const CHECK_MS = 20_000;
const QUIET: Log = { debug() {}, info() {}, warn() {}, error() {} };
const NOT_SHOWN =
  'The secret is not to be read from here: type it, or leave the field empty to keep the stored one.';
/** In the place of secrets on the page. */
const PLACEHOLDER = /^[•*]+$/;

/** For the first look at the page: cheap, and without the rest. */
export async function isSetupDue(config: Config, store: Store): Promise<boolean> {
  return config.model.server === null && (await settingOf(store, LEFT)) === null;
}

export function createSetup(parts: SetupParts): Setup {
  const { config, store, links } = parts;
  return {
    state: () => stateOf(parts),
    servers: () => findServers(parts.ports ?? USUAL_PORTS),
    tryModel: (wish) => tryModel(parts, wish),
    saveModel: (wish) =>
      saving(parts, async () => {
        await refuseLinkLocal(wish.address.trim());
        return modelChanges(await parts.writer.read(), wish);
      }),
    checkToken: (platform, token) => checkToken(parts, platform, token),
    saveToken: (platform, token) =>
      saving(parts, async () => [{ path: ['channels', platform, 'token'], value: typed(token) }]),
    async connectWhatsApp() {
      const path = ['channels', 'whatsapp', 'enabled'];
      const saved = await saving(parts, async () => [{ path, value: true }]);
      // Its codes are shown for some minutes only: a new gateway asks for others.
      const isStill = saved.saved && saved.isSame && config.channels.whatsapp !== null;
      const isHere = parts.heldBy('whatsapp') === null;
      if (isStill && isHere && links.now() === null && !isConnected(parts, 'whatsapp')) parts.takeIn();
      return saved;
    },
    async linkPicture() {
      const shown = links.now();
      if (shown === null) return null;
      const { default: qrcode } = await import('qrcode');
      return qrcode.toString(shown.text, { type: 'svg', margin: 2 });
    },
    linkCode: (phone) => linkCode(parts, phone),
    takeIn: parts.takeIn,
    leave: (how) => putSetting(store, LEFT, how),
  };
}

async function stateOf({ config, store, serving, heldBy, links }: SetupParts): Promise<SetupState> {
  const { server } = config.model;
  const clean = createRedactor(secretsOf(config));
  const channel = (name: TokenPlatform | 'whatsapp'): ChannelSetup => {
    const status = serving.find((each) => each.name === name)?.status();
    const state = config.channels[name] ? 'on' : config.unready[name] ? 'begun' : 'none';
    const error = status?.lastError ?? null;
    const isConnected = status?.connected === true;
    return { state, isConnected, heldBy: heldBy(name), error: error && clean(error) };
  };
  return {
    isDue: await isSetupDue(config, store),
    model: server && {
      address: shownAddress(server.baseUrl),
      name: server.name,
      hasKey: server.apiKey !== null,
    },
    channels: { telegram: channel('telegram'), discord: channel('discord'), whatsapp: channel('whatsapp') },
    link: links.now()?.n ?? null,
  };
}

function isConnected({ serving }: SetupParts, name: string): boolean {
  return serving.find((each) => each.name === name)?.status().connected === true;
}

/** An address may hold a login. */
function shownAddress(address: string): string {
  const url = new URL(address);
  if (url.username === '' && url.password === '' && url.search === '') return address;
  return `${url.origin}${url.pathname}`;
}

async function tryModel({ writer, config }: SetupParts, wish: ModelWish): Promise<Tried> {
  try {
    const candidate = await writer.preview(modelChanges(await writer.read(), wish));
    const { server } = candidate.model;
    if (server === null) return { works: false, says: 'Give the name of a model.' };
    const { baseUrl, apiKey, name, headers = {} } = server;
    const outward = createOutward(candidate.network.proxies);
    const secrets = [...secretsOf(config), ...secretsOf(candidate)];
    return await tryServer({ address: baseUrl, key: apiKey, model: name, headers }, outward, secrets);
  } catch (error) {
    return { works: false, says: faultIn(error) };
  }
}

/** A stored key or header stays only with its address: another server is not told it. */
function modelChanges({ model: { server } }: Config, { address, key, model }: ModelWish): KeyChange[] {
  const isStored =
    server !== null && [server.baseUrl, shownAddress(server.baseUrl)].some((each) => isSame(each, address));
  if (!isStored && Object.keys(server?.headers ?? {}).length > 0) {
    const what = 'model.headers may hold a key of the other server: change the address in config.yaml';
    throw new Fault('configuration', what);
  }
  return [
    // An address with a login is shown without it, and then stays.
    ...(isStored ? [] : [{ path: ['model', 'base_url'], value: address.trim() }]),
    { path: ['model', 'name'], value: model.trim() },
    ...(key === null
      ? isStored
        ? []
        : [{ path: ['model', 'api_key'], value: null }]
      : [{ path: ['model', 'api_key'], value: typed(key) }]),
  ];
}

function isSame(one: string, other: string): boolean {
  const plain = (address: string) => address.trim().replace(/(?<!\/)\/+$/, '');
  return plain(one) === plain(other);
}

function typed(secret: string): string {
  const text = secret.trim();
  if (PLACEHOLDER.test(text)) throw new Fault('configuration', NOT_SHOWN);
  return text;
}

async function saving(parts: SetupParts, changes: () => Promise<KeyChange[]>): Promise<Saved> {
  try {
    const { file, changed, warnings } = await parts.writer.write(await changes(), parts.who);
    if (changed.length > 0) parts.takeIn();
    return { saved: true, file, isSame: changed.length === 0, warnings };
  } catch (error) {
    return { saved: false, says: faultIn(error) };
  }
}

/** Throws on: an error that is nobody's input. */
function faultIn(error: unknown): string {
  if (error instanceof Fault && (error.code === 'configuration' || error.code === 'unauthorised'))
    return error.message;
  throw error;
}

async function checkToken(parts: SetupParts, platform: TokenPlatform, token: string): Promise<Tried> {
  let candidate: Config;
  try {
    candidate = await parts.writer.preview([{ path: ['channels', platform, 'token'], value: typed(token) }]);
  } catch (error) {
    return { works: false, says: faultIn(error) };
  }
  const clean = createRedactor([...secretsOf(parts.config), ...secretsOf(candidate)]);
  // Nothing that a check learns is kept: the running channel knows better.
  const store = { ...parts.store, setValues: async () => {} };
  const lent = { store, personas: parts.personas, audit: { note: async () => {} }, log: QUIET, show() {} };
  const channel = await createPlatform(platform, candidate, lent);
  if (!channel?.check) return { works: false, says: `${platform} cannot be checked.` };
  const over = new AbortController();
  try {
    const late = parts.clock.sleep(CHECK_MS, over.signal).then((): never => {
      throw new Error('there was no answer in time');
    });
    const { identity, warnings, invite } = await Promise.race([channel.check(), late]);
    return { works: true, says: clean(identity), ...(invite && { invite }), warnings: warnings.map(clean) };
  } catch (error) {
    return { works: false, says: clean(describe(error)) };
  } finally {
    over.abort(OVER);
    await channel.stop();
  }
}

async function linkCode({ serving, heldBy, audit, who }: SetupParts, phone: string): Promise<Tried> {
  const holder = heldBy('whatsapp');
  if (holder !== null)
    return { works: false, says: `The gateway ${holder} holds WhatsApp. Open its page to link the phone.` };
  const channel = serving.find(({ linkCode }) => linkCode !== undefined);
  if (channel?.linkCode === undefined) return { works: false, says: 'WhatsApp is not switched on yet.' };
  const what = `a code to link WhatsApp to ${phone.replaceAll(/[^\d+ ]/g, '')} is asked for`;
  await audit.record({ ...who, kind: 'link', what });
  try {
    return { works: true, says: await channel.linkCode(phone), warnings: [] };
  } catch (error) {
    return { works: false, says: describe(error) };
  }
}
