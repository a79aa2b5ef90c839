/**
 * Keeps connected: a connection that ends is followed by a new one, at once or after a pause, without an end. That
 * nobody has linked us yet, that the phone removed us, and that WhatsApp is not there are states to come out of.
 */

import type { BinaryNode, WASocket, WAVersion } from '@whiskeysockets/baileys';
import type { Clock } from '../../core/clock.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import type { Outward } from '../../core/network.js';
import { onAbort } from '../kit/abort.js';
import { type Setback, type State, supervise } from '../kit/supervise.js';
import { type Closing, type Connection, closingOf, connect, pauseAfter, UNLINKED } from './connection.js';
import { accountOf, type Credentials, isLinked, isUnused, meIn } from './credentials.js';
import { markOf, numberOf, type Person, personOf } from './ids.js';
import type { Intake, Login } from './intake.js';
import type { Groups } from './lookup.js';
import type { WhatsAppOptions } from './options.js';
import type { Trouble } from './restrictions.js';
import { type Resending, resending } from './send.js';
import { type BeforeUse, storingFirst } from './signal.js';

/** A connection that lasted so long before it ended in that way was a good one. */
const GOOD_AFTER_MS: Record<Closing['kind'], number> = {
  restart: 60_000,
  // Codes are shown for minutes, however often nobody scans them.
  unlinked: Number.POSITIVE_INFINITY,
  'logged out': 60_000,
  // Another client that took the link away comes back as soon as we do.
  replaced: 600_000,
  outdated: 60_000,
  refused: 60_000,
  interrupted: 60_000,
};
/** Credentials that cannot be saved are the only copy. */
const SAVE_AGAIN_MS = 5_000;

interface Parts {
  credentials(): Promise<Credentials>;
  /** Makes a connection. `opened` is to be called when it is logged in. */
  connect(credentials: Credentials, opened: () => void): Promise<Connection>;
  /** Forgets the credentials, which are worth nothing any more. */
  forget(): Promise<void>;
  /** What is to be done when WhatsApp has retired our version. */
  renewVersion(): Promise<Closing>;
  state: State;
  trouble: Trouble;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
}

export interface Reconnecting {
  /** The connection that is logged in. */
  open(): Connection | null;
  /** Ends the connection that there is; a new one follows. */
  renew(reason: Error): void;
  /** Ends when the signal aborts and the last connection is over. Never rejects. */
  run(): Promise<void>;
}

export function createReconnecting(parts: Parts): Reconnecting {
  const { state, trouble, clock, log, signal } = parts;
  let current: Connection | null = null;
  let isOpen = false;
  let last: Closing['kind'] | null = null;

  async function round(): Promise<Setback & Closing> {
    const beganAt = clock.now();
    const closing = await connectOnce();
    isOpen = false;
    current = null;
    const lasted = clock.now() - beganAt;
    const first = closing.kind !== last || lasted >= GOOD_AFTER_MS[closing.kind];
    last = closing.kind;
    return { ...closing, first, pauseMs: (failures) => pauseAfter(closing, failures) };
  }

  /** One connection, from beginning to end. */
  async function connectOnce(): Promise<Closing> {
    try {
      const credentials = await parts.credentials();
      const connection = await parts.connect(credentials, () => {
        isOpen = true;
        state.up();
        trouble.over();
      });
      current = connection;
      const unlisten = onAbort(signal, () => connection.end(new Error('the gateway stops')));
      const error = await connection.ended;
      isOpen = false;
      current = null;
      unlisten();
      const { closing, isLost } = closingOfLink(error, credentials);
      if (!isLost) await save(credentials);
      // What the library still does for this connection must not undo what the next one writes.
      credentials.retire();
      if (isLost) await parts.forget();
      return closing.kind === 'outdated' ? await parts.renewVersion() : closing;
    } catch (error) {
      return { kind: 'interrupted', reason: describe(error) };
    }
  }

  async function save(credentials: Credentials): Promise<void> {
    for (;;) {
      try {
        return await credentials.settled();
      } catch (error) {
        log.error(
          { channel: 'whatsapp', reason: describe(error) },
          'the credentials of WhatsApp could not be saved; trying again',
        );
        if (signal.aborted) return;
        await clock.sleep(SAVE_AGAIN_MS, signal);
        credentials.save();
      }
    }
  }

  function tell({ kind }: Closing, { reason, pauseMs }: { reason: string; pauseMs: number }): void {
    const fields = { channel: 'whatsapp', reason, pauseMs };
    if (kind !== 'restart' && kind !== 'interrupted') trouble.met(reason);
    if (kind === 'restart') log.debug(fields, 'a new connection to WhatsApp is due');
    else if (kind === 'unlinked') {
      log.warn(
        fields,
        'WhatsApp is not linked; new QR codes follow after the pause, or at once when the gateway is started again',
      );
    } else if (kind === 'logged out') {
      log.error(
        fields,
        'WhatsApp: this gateway was removed from the linked devices; its credentials are forgotten. To link it again, scan the QR code that follows',
      );
    } else if (kind === 'interrupted') {
      log.warn(fields, 'the connection to WhatsApp is interrupted; trying again');
    } else log.error(fields, 'WhatsApp does not keep this connection; trying again later');
  }

  return {
    open: () => (isOpen ? current : null),
    renew: (reason) => current?.end(reason),
    async run() {
      await supervise({ round, log: tell, state, clock, signal });
      await trouble.settled();
      state.down('the gateway stops');
    },
  };
}

/** "Logged out" may also mean that WhatsApp refuses to link us, or that it took a link back before it was used. */
function closingOfLink(error: unknown, { auth }: Credentials): { closing: Closing; isLost: boolean } {
  const closing = closingOf(error);
  if (closing.kind !== 'logged out') return { closing, isLost: false };
  if (!isLinked(auth.creds))
    return { closing: { kind: 'unlinked', reason: UNLINKED.refused }, isLost: false };
  if (isUnused(auth.creds))
    return { closing: { kind: 'unlinked', reason: UNLINKED.takenBack }, isLost: true };
  return { closing, isLost: true };
}

export interface LoginParts {
  options: WhatsAppOptions;
  version(): Promise<WAVersion>;
  clock: Clock;
  log: Log;
  intake: Intake;
  groups: Groups;
  resends: Resending;
  /** Whether what comes may be taken in. */
  takesIn(): boolean;
  /** The time of the newest message that was stored, ms; null before the first. */
  outward: Outward;
  cursor(account: string): Promise<string | null>;
  onQr(text: string): void;
  /** This gateway became a linked device of that number. */
  onLinked(number: string): void;
  onRestriction(until: number | null): void;
  /** Somebody gives the token without which WhatsApp may refuse what is written to them. */
  onToken(from: Person): void;
}

export async function logIn(
  parts: LoginParts,
  credentials: Credentials,
  isOpen: () => void,
): Promise<Connection> {
  const { options, outward, clock, log, groups, intake } = parts;
  const { creds } = credentials.auth;
  const me = meIn(creds);
  const stored = me === null ? null : await parts.cursor(accountOf(me));
  const login: Login = {
    me: () => meIn(creds),
    mark: markOf(creds.signedIdentityKey.public),
    since: Math.max(credentials.pairedAt(), Number(stored ?? 0)),
  };
  /** The stanza in which a ciphertext came: the library hands over the ciphertext alone. */
  const stanzas = new WeakMap<Uint8Array, BinaryNode>();
  const connection = connect({
    options,
    version: await parts.version(),
    credentials,
    outward,
    clock,
    log,
    hooks: {
      makeSignalRepository: storingFirst(beforeUse()),
      cachedGroupMetadata: groups.metadata,
      getMessage: resending(parts.resends, login.mark, () => connection.socket),
    },
    onQr: parts.onQr,
    onRestriction: parts.onRestriction,
    onPaired() {
      credentials.linked(clock.now());
      log.info({ channel: 'whatsapp' }, 'linked to the phone');
      parts.onLinked(numberOf({ phone: login.me()?.phone ?? null, lid: null }));
    },
    onOpen() {
      isOpen();
      groups.wasAway();
      const number = numberOf({ phone: login.me()?.phone ?? null, lid: null });
      log.info({ channel: 'whatsapp', number }, 'logged in');
    },
  });
  listen(connection.socket);
  return connection;

  function beforeUse(): BeforeUse {
    return {
      // A message that comes when no more are taken in stays with WhatsApp.
      mayTakeIn: () => (parts.takesIn() ? Promise.resolve() : new Promise(() => {})),
      async decrypted(ciphertext, plaintext, keys) {
        const stanza = stanzas.get(ciphertext);
        if (stanza === undefined) return;
        try {
          await intake.decrypted(stanza, plaintext, login, async (names) => keys.get('lid-mapping', names));
        } catch (error) {
          // It is still with WhatsApp, which gives it to the next connection.
          connection.end(new Error(`what came from WhatsApp could not be stored: ${describe(error)}`));
          throw error;
        }
      },
    };
  }

  function listen({ ws, ev }: WASocket): void {
    ws.on('CB:message', (stanza: BinaryNode) => {
      const parts = Array.isArray(stanza.content) ? stanza.content : [];
      for (const { content } of parts) {
        if (content instanceof Uint8Array) stanzas.set(content, stanza);
      }
      if (isWithheld(parts)) void store(() => intake.withheld(stanza, login));
    });
    ws.on('CB:notification,type:privacy_token', ({ attrs }: BinaryNode) => {
      void whose(attrs.from).then(parts.onToken);
    });
    ev.on('messages.upsert', ({ messages, type }) => {
      for (const message of messages) void store(() => intake.handedOut(message, type !== 'notify', login));
    });
    ev.on('groups.upsert', groups.changed);
    ev.on('groups.update', groups.changed);
    ev.on('group-participants.update', ({ id }) => groups.membersChanged(id));
  }

  async function whose(jid: string | undefined): Promise<Person> {
    const person = personOf(jid);
    if (person.phone !== null || person.lid === null) return person;
    const phone = await connection.socket.signalRepository.lidMapping
      .getPNForLID(person.lid)
      .catch(() => null);
    return personOf(person.lid, phone);
  }

  async function store(work: () => Promise<void>): Promise<void> {
    if (!parts.takesIn()) return;
    try {
      await work();
    } catch (error) {
      log.error({ channel: 'whatsapp', reason: describe(error) }, 'a message could not be stored');
    }
  }
}

/** A message to be viewed once comes without what it says. */
function isWithheld(parts: BinaryNode[]): boolean {
  const isUnavailable = parts.some(
    ({ tag, attrs }) => tag === 'unavailable' && attrs.type?.startsWith('view_once'),
  );
  return isUnavailable && parts.every(({ tag }) => tag !== 'enc');
}
