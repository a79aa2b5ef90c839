/**
 * Keeps WhatsApp connected: each ended connection is followed by a new one, at once or after a pause,
 * indefinitely. Not being linked yet, being unlinked by the phone, and an outage are states to recover from.
 */
import {
  type BinaryNode,
  DEFAULT_CONNECTION_CONFIG,
  type WASocket,
  type WAVersion,
} from '@whiskeysockets/baileys';
import * as z from 'zod';
import { onAbort, withDeadline } from '../../core/clock.js';
import { describe } from '../../core/errors.js';
import { download } from '../kit/download.js';
import { supervise } from '../kit/supervise.js';
import {
  afterClosing,
  type Closing,
  closingOf,
  connect,
  UNLINKED,
  type WhatsAppConnection,
} from './connection.js';
import {
  accountOf,
  type Credentials,
  forgetLink,
  isHalfLinked,
  isLinked,
  isUnused,
  meIn,
  openCredentials,
  VERSION,
} from './credentials.js';
import type { GroupDirectory } from './directory.js';
import { isLid, markOf, numberOf, plainJid } from './ids.js';
import type { Login, WhatsAppIntake } from './intake.js';
import { askForCode, digitsOf, notLinked } from './link-code.js';
import type { LinkHost, WhatsAppHost } from './options.js';
import { createAlert } from './restrictions.js';
import { resending, type SendContext } from './send.js';
import { storingFirst } from './signal.js';

/** Credentials that cannot be saved are the only copy: the write is retried. */
const SAVE_AGAIN_MS = 5_000;

interface ReconnectParts {
  host: WhatsAppHost;
  intake: WhatsAppIntake;
  groups: GroupDirectory;
  sender: SendContext;
  takesIn(): boolean;
  signal: AbortSignal;
}

export function createReconnecting(parts: ReconnectParts) {
  const { host, signal } = parts;
  const { status } = parts.sender;
  const { state, clock, log } = host;
  const alert = createAlert('trouble', state, log);
  const versions = createVersions(host, signal);
  let current: WhatsAppConnection | null = null;
  let isOpen = false;
  let last: Closing['kind'] | null = null;

  async function round(failures: number) {
    const beganAt = clock.now();
    const closing = await connectOnce();
    const { wasGood, pauseMs, line } = afterClosing(closing, clock.now() - beganAt);
    const first = closing.kind !== last || wasGood;
    last = closing.kind;
    return { ...closing, first, line, pauseMs: pauseMs(first ? 0 : failures) };
  }

  async function connectOnce(): Promise<Closing> {
    try {
      const credentials = await openCredentials(state);
      const connection = await logIn(parts, await versions.current(), credentials, () => {
        isOpen = true;
        status.up();
        alert.set(null);
      });
      current = connection;
      const unlisten = onAbort(signal, () => connection.end(new Error('the gateway stops')));
      const error = await connection.ended;
      isOpen = false;
      current = null;
      unlisten();
      const { closing, isLost } = closingOfLink(error, credentials);
      if (!isLost) await save(credentials);
      // Late work of the library for this connection must not overwrite the next one's.
      credentials.retire();
      if (isLost || isHalfLinked(credentials.auth.creds)) await forgetLink(state);
      return closing.kind === 'outdated' ? await versions.refused() : closing;
    } catch (error) {
      return { kind: 'interrupted', reason: describe(error) };
    }
  }

  async function save(credentials: Credentials): Promise<void> {
    for (;;) {
      try {
        return await credentials.settled();
      } catch (error) {
        const fields = { channel: 'whatsapp', reason: describe(error) };
        log.error(fields, 'saving the WhatsApp credentials failed; retrying');
        if (signal.aborted) return;
        await clock.sleep(SAVE_AGAIN_MS, signal);
        credentials.save();
      }
    }
  }

  return {
    open: (): WhatsAppConnection | null => (isOpen && current?.isOver() === false ? current : null),
    linkCode: (phone: string): Promise<string> => linkCodeOver(current, phone),
    /** Ends the present connection; a new one follows. */
    renew: (reason: Error): void => current?.end(reason),
    /** Ends when the signal has aborted and the last connection is closed. Never rejects. */
    async run(): Promise<void> {
      await supervise({
        round,
        state: status,
        clock,
        signal,
        log({ kind, line: [level, message] }, { reason, pauseMs }) {
          if (level === 'error' || kind === 'unlinked') alert.set(reason);
          log[level]({ channel: 'whatsapp', reason, pauseMs }, message);
        },
      });
      await alert.settled();
      status.down('the gateway stops');
    },
  };
}

async function linkCodeOver(connection: WhatsAppConnection | null, phone: string): Promise<string> {
  const digits = digitsOf(phone);
  if (connection === null) throw notLinked('it is not connected just now; try again in a minute');
  if (isLinked(connection.credentials.auth.creds)) throw notLinked('it is linked already');
  return askForCode(connection.socket, digits);
}

/** "Logged out" may also mean that WhatsApp refuses to link us, or withdrew a link before its first use. */
function closingOfLink(error: unknown, { auth }: Credentials): { closing: Closing; isLost: boolean } {
  const closing = closingOf(error);
  if (closing.kind !== 'logged out') return { closing, isLost: false };
  const isLost = isLinked(auth.creds);
  if (isLost && !isUnused(auth.creds)) return { closing, isLost };
  return { closing: { kind: 'unlinked', reason: isLost ? UNLINKED.takenBack : UNLINKED.refused }, isLost };
}

/** One login: a connection whose messages go to the intake, with the library's questions answered. */
async function logIn(
  parts: ReconnectParts,
  version: WAVersion,
  credentials: Credentials,
  isOpen: () => void,
): Promise<WhatsAppConnection> {
  const { host, intake, groups, sender, takesIn, signal } = parts;
  const { clock, log } = host;
  const { creds } = credentials.auth;
  const me = meIn(creds);
  const stored = me === null ? null : await host.cursor(accountOf(me));
  const login: Login = {
    me: () => meIn(creds),
    mark: markOf(creds.signedIdentityKey.public),
    since: Math.max(credentials.pairedAt(), Number(stored ?? 0)),
  };
  const ownNumber = () => numberOf({ phone: login.me()?.phone ?? null, lid: null });
  /** The stanza of each ciphertext: the library passes only the ciphertext. */
  const stanzas = new WeakMap<Uint8Array, BinaryNode>();
  const beforeUse = {
    // A message that arrives after intake has stopped stays with WhatsApp.
    mayTakeIn: () => (takesIn() ? Promise.resolve() : new Promise<void>(() => {})),
    async decrypted(ciphertext, plaintext, keys) {
      const stanza = stanzas.get(ciphertext);
      if (stanza === undefined) return;
      try {
        await intake.decrypted(stanza, plaintext, login, async (names) => keys.get('lid-mapping', names));
      } catch (error) {
        // WhatsApp still has it, and delivers it to the next connection.
        connection.end(new Error(`what came from WhatsApp could not be stored: ${describe(error)}`));
        throw error;
      }
    },
  } satisfies Parameters<typeof storingFirst>[0];
  const connection = connect({
    ...host,
    version,
    credentials,
    hooks: {
      makeSignalRepository: storingFirst(beforeUse),
      cachedGroupMetadata: groups.metadata,
      getMessage: resending(sender, host.sentPart, signal, login.mark, () => connection.socket),
    },
    onQr(text) {
      sender.status.down('not linked yet: scan the QR code with the phone, under Linked devices');
      host.onQr(text);
    },
    onRestriction: sender.restrictions.restricted,
    onPaired() {
      credentials.linked(clock.now());
      log.info({ channel: 'whatsapp' }, 'WhatsApp linked the gateway to the phone');
      host.noteLink(ownNumber());
    },
    onOpen() {
      isOpen();
      groups.wasAway();
      log.info({ channel: 'whatsapp', number: ownNumber() }, 'logged in');
    },
  });
  listen(connection.socket, stanzas, parts, login);
  return connection;
}

function listen(
  { ws, ev, signalRepository }: WASocket,
  stanzas: WeakMap<Uint8Array, BinaryNode>,
  { host, intake, groups, sender, takesIn }: ReconnectParts,
  login: Login,
): void {
  async function store(work: () => Promise<void>): Promise<void> {
    if (!takesIn()) return;
    try {
      await work();
    } catch (error) {
      host.log.error({ channel: 'whatsapp', reason: describe(error) }, 'storing a message failed');
    }
  }

  async function opened(jid: string | undefined): Promise<void> {
    const from = plainJid(jid);
    if (from === null) return;
    sender.restrictions.opened(from);
    const phone = isLid(from) ? await signalRepository.lidMapping.getPNForLID(from) : null;
    if (phone !== null) sender.restrictions.opened(plainJid(phone) ?? phone);
  }

  ws.on('CB:message', (stanza: BinaryNode) => {
    const parts = Array.isArray(stanza.content) ? stanza.content : [];
    for (const { content } of parts) if (content instanceof Uint8Array) stanzas.set(content, stanza);
    if (isWithheld(parts)) void store(() => intake.withheld(stanza, login));
  });
  // A person provides the token without which WhatsApp may refuse messages to them.
  ws.on('CB:notification,type:privacy_token', ({ attrs }: BinaryNode) => {
    opened(attrs.from).catch((error) => {
      const fields = { channel: 'whatsapp', reason: describe(error) };
      host.log.debug(fields, 'looking up the phone number of a chat failed');
    });
  });
  ev.on('messages.upsert', ({ messages, type }) => {
    for (const message of messages) void store(() => intake.handedOut(message, type !== 'notify', login));
  });
  ev.on('groups.upsert', groups.changed);
  ev.on('groups.update', groups.changed);
  ev.on('group-participants.update', ({ id }) => groups.membersChanged(id));
}

/** A view-once message comes without its content. */
function isWithheld(parts: BinaryNode[]): boolean {
  const isUnavailable = ({ tag, attrs }: BinaryNode) =>
    tag === 'unavailable' && attrs.type?.startsWith('view_once');
  return parts.some(isUnavailable) && parts.every(({ tag }) => tag !== 'enc');
}

const LOOK_UP_EVERY_MS = 6 * 3_600_000;
const LOOK_UP_TIMEOUT_MS = 15_000;
const MOST_BYTES = 5_000_000;
/** Without these, WhatsApp's servers answer with a page for outdated browsers. */
const HEADERS = {
  'sec-fetch-site': 'none',
  'user-agent':
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36',
};

const rememberedSchema = z.object({ version: z.string().nullable(), lookedUpAt: z.number() });

/**
 * The version of WhatsApp Web to log in as. WhatsApp retires old ones and then closes with 405 before
 * anything else; to recover without a release, the newest is then looked up where a browser finds it.
 */
export function createVersions({ options, state, outward, clock, log }: LinkHost, signal: AbortSignal) {
  async function remembered(): Promise<z.output<typeof rememberedSchema>> {
    const written = (await state.get([VERSION])).get(VERSION);
    return rememberedSchema.safeParse(JSON.parse(written ?? 'null')).data ?? { version: null, lookedUpAt: 0 };
  }

  async function remember(version: string | null): Promise<void> {
    await state.set(new Map([[VERSION, JSON.stringify({ version, lookedUpAt: clock.now() })]]));
  }

  async function current(): Promise<WAVersion> {
    if (options.version !== null) return numbersOf(options.version);
    const { version } = await remembered();
    const own = DEFAULT_CONNECTION_CONFIG.version;
    // After an update, the library's may be newer.
    return version !== null && isNewer(numbersOf(version), own) ? numbersOf(version) : own;
  }

  async function lookUp(): Promise<WAVersion> {
    const { protocol, host } = new URL(options.webSocketUrl ?? 'wss://web.whatsapp.com');
    const origin = `${protocol === 'ws:' ? 'http' : 'https'}://${host}`;
    const limits = { server: host, maxBytes: MOST_BYTES, headers: HEADERS, trusted: [origin], outward };
    // The service worker of WhatsApp Web.
    const loaded = await withDeadline(clock, LOOK_UP_TIMEOUT_MS, signal, (ended) =>
      download(`${origin}/sw.js`, { ...limits, signal: ended }),
    );
    if (loaded.kind === 'too large') throw new Error('the page with it is too large');
    if (loaded.kind !== 'fetched') throw new Error(loaded.reason);
    const [, revision] = /\\?"client_revision\\?":\s*(\d{6,15})\b/.exec(loaded.bytes.toString()) ?? [];
    if (revision === undefined) throw new Error(`${origin}/sw.js does not tell it`);
    return [2, 3000, Number(revision)];
  }

  /** WhatsApp refused the version as too old. Returns a restart if there is another now; else what to do. */
  async function refused(): Promise<Closing> {
    const old = (await current()).join('.');
    const told = `WhatsApp refuses the version of its client that the gateway says it is, ${old}, as too old (405)`;
    const remedy = 'set channels.whatsapp.version to a newer version, or update the gateway';
    const stuck = (why: string): Closing => ({ kind: 'refused', reason: `${told}; ${why}` });
    if (options.version !== null) {
      return stuck('it stands in channels.whatsapp.version: leave that out, or set a newer version there');
    }
    const { version, lookedUpAt } = await remembered();
    if (clock.now() - lookedUpAt < LOOK_UP_EVERY_MS)
      return stuck(`a newer one was looked up lately: ${remedy}`);
    // Stored before the lookup: a gateway in a restart loop does not repeat it each time.
    await remember(version);
    try {
      const found = await lookUp();
      if (!isNewer(found, numbersOf(old))) return stuck(`a newer version is not to be found: ${remedy}`);
      await remember(found.join('.'));
      const fields = { channel: 'whatsapp', refused: old, version: found.join('.') };
      log.warn(fields, 'WhatsApp refused the client version as too old; using the newest');
      return { kind: 'restart', reason: `WhatsApp refused version ${old} as too old (405)` };
    } catch (error) {
      return stuck(`the newest could not be looked up (${describe(error)}): ${remedy}`);
    }
  }

  return { current, refused };
}

function numbersOf(version: string): WAVersion {
  const [first = 0, second = 0, third = 0] = version.split('.').map(Number);
  return [first, second, third];
}

function isNewer(one: WAVersion, other: WAVersion): boolean {
  return one.join('.').localeCompare(other.join('.'), 'en', { numeric: true }) > 0;
}
