/** One login: a connection, with its messages handed to the intake and the library's questions answered. */
import type { BinaryNode, WASocket, WAVersion } from '@whiskeysockets/baileys';
import type { Clock } from '../../core/clock.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import type { Outward } from '../../core/outward.js';
import { accountOf, meIn } from './account.js';
import { type Connection, connect } from './connection.js';
import type { Credentials } from './credentials.js';
import type { Groups } from './groups.js';
import type { Intake, Login } from './intake.js';
import { numberOf, type Person, personOf } from './jid.js';
import type { WhatsAppOptions } from './options.js';
import { markOf } from './own-ids.js';
import { type Resending, resending } from './resend.js';
import { type BeforeUse, storingFirst } from './signal.js';

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
