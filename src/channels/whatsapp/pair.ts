/** Links by a code typed on the phone. The previous link stays until the new one is complete. */
import { type BinaryNode, getBinaryNodeChild, type WASocket, type WAVersion } from '@whiskeysockets/baileys';
import type { ChannelState } from '../../core/channel.js';
import { onAbort } from '../../core/clock.js';
import { Fault } from '../../core/errors.js';
import { closingOf, connect, silenceLibsignal, UNLINKED, type WhatsAppConnection } from './connection.js';
import { type Credentials, forgetLink, meIn, openCredentials } from './credentials.js';
import { numberOf } from './ids.js';
import { askForCode, digitsOf, notLinked } from './link-code.js';
import type { LinkHost } from './options.js';
import { createVersions } from './reconnect.js';
import { storingFirst } from './signal.js';

/** Maximum number of retries of a failing connection. */
const TRIES = 10;
const PAUSE_MS = 2_000;

export interface Pairing extends LinkHost {
  /** With the country code. */
  phone: string;
  /** Shows a code, which invalidates the one before. */
  show(code: string): void;
  signal: AbortSignal;
}

/** Throws when cancelled or when linking fails. */
export async function pairByPhone(pairing: Pairing): Promise<{ number: string }> {
  const digits = digitsOf(pairing.phone);
  const unsilence = silenceLibsignal(pairing.log);
  try {
    return await untilLinked(pairing, digits);
  } finally {
    unsilence();
  }
}

async function untilLinked(pairing: Pairing, digits: string): Promise<{ number: string }> {
  const { clock, signal, state } = pairing;
  const staged = staging(state);
  const versions = createVersions(pairing, signal);
  let reason = '';
  for (let failures = 0; failures < TRIES && !signal.aborted; ) {
    const credentials = await openCredentials(staged.state);
    const version = await versions.current();
    const error = await connectOnce(pairing, credentials, version, digits, staged.commit);
    await credentials.settled();
    // The store is closed soon, and the next connection starts from its current content.
    credentials.retire();
    const me = meIn(credentials.auth.creds);
    if (error === LINKED && me !== null) return { number: numberOf({ ...me, lid: null }) };
    if (error instanceof Fault) throw error;
    let closing = closingOf(error);
    if (closing.kind === 'outdated') closing = await versions.refused();
    if (closing.kind === 'refused') throw notLinked(closing.reason);
    reason = closing.kind === 'unlinked' ? UNLINKED.untyped : closing.reason;
    // The shown code is now invalid, and so is the pairing that began with it.
    if (!staged.committed() && closing.kind !== 'restart') staged.clear();
    if (closing.kind === 'logged out') {
      if (!staged.committed()) throw notLinked(UNLINKED.refused);
      await forgetLink(state);
      throw notLinked(UNLINKED.takenBack);
    }
    if (closing.kind === 'restart' || closing.kind === 'unlinked') continue;
    failures += 1;
    await clock.sleep(PAUSE_MS, signal);
  }
  throw notLinked(signal.aborted ? 'given up' : reason);
}

const LINKED = new Error('linked');

/** Why it ended: `LINKED`, a fault after which a retry would end the same way, or an error of the connection. */
async function connectOnce(
  pairing: Pairing,
  credentials: Credentials,
  version: WAVersion,
  digits: string,
  commit: () => Promise<void>,
): Promise<unknown> {
  const { clock, show, signal } = pairing;
  let isAsked = false;
  let isTyped = false;
  const end = (error: unknown) => connection.end(error instanceof Error ? error : new Error(String(error)));
  // Messages that already arrive are for the gateway: they stay with WhatsApp until it runs.
  const mayTakeIn = () => new Promise<void>(() => {});
  const connection: WhatsAppConnection = connect({
    ...pairing,
    version,
    credentials,
    hooks: { makeSignalRepository: storingFirst({ mayTakeIn, decrypted: async () => {} }) },
    onQr() {
      if (isAsked) return;
      isAsked = true;
      askForCode(connection.socket, digits).then(show, end);
    },
    onPaired() {
      credentials.linked(clock.now());
      credentials.settled().then(commit).catch(end);
    },
    onOpen: () => end(LINKED),
  });
  onCodeTyped(connection.socket, end, () => {
    isTyped = true;
  });
  const unlisten = onAbort(signal, () => connection.end(new Error('given up')));
  try {
    const error = await connection.ended;
    return isTyped && closingOf(error).kind === 'unlinked' ? notLinked(UNLINKED.stalled) : error;
  } finally {
    unlisten();
  }
}

const NEEDED = [
  'link_code_pairing_ref',
  'primary_identity_pub',
  'link_code_pairing_wrapped_primary_ephemeral_pub',
];

/**
 * Calls `taken` when the code was typed on the phone, and `refused` when the answer lacks parts: the account
 * has to prove a passkey (WhiskeySockets/Baileys#2694).
 */
function onCodeTyped(socket: WASocket, refused: (why: Fault) => void, taken: () => void): void {
  socket.ws.on('CB:notification,type:link_code_companion_reg', (notification: BinaryNode) => {
    const hello = getBinaryNodeChild(notification, 'link_code_companion_reg');
    if (NEEDED.every((part) => getBinaryNodeChild(hello, part) !== undefined)) taken();
    else refused(notLinked(UNLINKED.passkey));
  });
}

/** Holds a pairing's writes in memory until the link is complete; from then on it is the state itself. */
function staging(state: ChannelState) {
  const held = new Map<string, string>();
  let committing: Promise<void> | null = null;
  const staged: ChannelState = {
    async get(names) {
      if (committing !== null) return committing.then(() => state.get(names));
      return new Map([...held].filter(([name]) => names.includes(name)));
    },
    async set(values) {
      if (committing !== null) return committing.then(() => state.set(values));
      for (const [name, value] of values) {
        if (value === null) held.delete(name);
        else held.set(name, value);
      }
    },
    async clear() {
      held.clear();
    },
  };
  return {
    state: staged,
    committed: () => committing !== null,
    clear: () => held.clear(),
    commit() {
      committing ??= forgetLink(state).then(() => state.set(held));
      return committing;
    },
  };
}
