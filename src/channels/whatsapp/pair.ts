/**
 * Linking by a code that is typed on the phone, while the gateway does not run. What was linked before stays until
 * the new link is there.
 */
import type { WAVersion } from '@whiskeysockets/baileys';
import type { ChannelState } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import { Fault } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import type { Outward } from '../../core/network.js';
import { onAbort } from '../kit/abort.js';
import {
  askForCode,
  type Connection,
  closingOf,
  connect,
  onCodeTyped,
  silenceLibsignal,
  UNLINKED,
  Unlinkable,
} from './connection.js';
import { type Credentials, forgetLink, meIn, openCredentials } from './credentials.js';
import { numberOf } from './ids.js';
import type { WhatsAppOptions } from './options.js';
import { storingFirst } from './signal.js';
import { createVersions } from './versions.js';

/** A connection that fails is tried again; so often, if nothing comes of it. */
const TRIES = 10;
const PAUSE_MS = 2_000;

export interface PairParts {
  options: WhatsAppOptions;
  state: ChannelState;
  outward: Outward;
  clock: Clock;
  log: Log;
  /** With the country code. */
  phone: string;
  /** Shows a code; an older one is worth nothing then. */
  show(code: string): void;
  signal: AbortSignal;
}

/** Throws when it is given up, or does not work. */
export async function pairByPhone(parts: PairParts): Promise<{ number: string }> {
  const digits = parts.phone.replace(/\D/g, '').replace(/^00/, '');
  if (!/^\d{6,15}$/.test(digits)) {
    throw new Fault('configuration', 'expected a phone number with its country code, like +49 170 1234567');
  }
  const unsilence = silenceLibsignal(parts.log);
  try {
    return await untilLinked(parts, digits);
  } finally {
    unsilence();
  }
}

async function untilLinked(parts: PairParts, digits: string): Promise<{ number: string }> {
  const { clock, signal, state } = parts;
  const staged = staging(state);
  const versions = createVersions(parts);
  let reason = '';
  for (let failures = 0; failures < TRIES && !signal.aborted; ) {
    const credentials = await openCredentials(staged.state);
    const version = await versions.current();
    const outcome = await connectOnce(parts, credentials, { version, digits, commit: staged.commit });
    await credentials.settled();
    // The store is closed soon, and the next connection begins with what is in it now.
    credentials.retire();
    if (outcome.kind === 'linked') return { number: outcome.number };
    if (outcome.kind === 'unlinkable') throw notLinked(outcome.reason);
    let closing = closingOf(outcome.reason);
    if (closing.kind === 'outdated') closing = await versions.refused();
    if (closing.kind === 'refused') throw notLinked(closing.reason);
    reason = closing.kind === 'unlinked' ? UNLINKED.untyped : closing.reason;
    // The code that was shown is worth nothing any more, and what was begun with it neither.
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

function notLinked(reason: string): Fault {
  return new Fault('internal', `WhatsApp was not linked: ${reason}`);
}

type Outcome =
  | { kind: 'linked'; number: string }
  | { kind: 'ended'; reason: unknown }
  /** Another try would end in the same way. */
  | { kind: 'unlinkable'; reason: string };

async function connectOnce(
  { options, outward, clock, log, show, signal }: PairParts,
  credentials: Credentials,
  { version, digits, commit }: { version: WAVersion; digits: string; commit(): Promise<void> },
): Promise<Outcome> {
  let asked = false;
  let typed = false;
  let opened: () => void = () => {};
  const open = new Promise<void>((resolve) => {
    opened = resolve;
  });
  const end = (error: unknown) => connection.end(error instanceof Error ? error : new Error(String(error)));
  const connection: Connection = connect({
    options,
    version,
    credentials,
    outward,
    clock,
    log,
    // Messages that come already are for the gateway: they stay with WhatsApp until it runs.
    hooks: {
      makeSignalRepository: storingFirst({
        mayTakeIn: () => new Promise(() => {}),
        decrypted: async () => {},
      }),
    },
    onQr() {
      if (asked) return;
      asked = true;
      askForCode(connection.socket, digits).then((code) => show(`${code.slice(0, 4)}-${code.slice(4)}`), end);
    },
    onPaired() {
      credentials.linked(clock.now());
      credentials.settled().then(commit).catch(end);
    },
    onOpen: opened,
  });
  onCodeTyped(connection.socket, {
    taken() {
      typed = true;
    },
    refused: end,
  });
  const unlisten = onAbort(signal, () => connection.end(new Error('given up')));
  try {
    const reason = await Promise.race([connection.ended, open.then(() => null)]);
    const me = meIn(credentials.auth.creds);
    if (reason instanceof Unlinkable) return { kind: 'unlinkable', reason: reason.message };
    if (typed && closingOf(reason).kind === 'unlinked')
      return { kind: 'unlinkable', reason: UNLINKED.stalled };
    if (reason !== null || me === null) return { kind: 'ended', reason };
    connection.end(new Error('linked'));
    return { kind: 'linked', number: numberOf({ ...me, lid: null }) };
  } finally {
    unlisten();
  }
}

/** Holds in memory what a pairing writes, until there is a link; from then on it is the state itself. */
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
