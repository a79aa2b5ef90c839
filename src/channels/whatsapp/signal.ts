/**
 * The library's encryption, in an order that survives `kill -9` (decision 0013): a message is stored before the
 * session that decrypted it advances, and a session is on disk before what it encrypted is sent.
 */
import { AsyncResource } from 'node:async_hooks';
import { DEFAULT_CONNECTION_CONFIG, type SignalDataSet, type SocketConfig } from '@whiskeysockets/baileys';
import { createMutex } from '../../core/concurrency.js';

type MakeRepository = SocketConfig['makeSignalRepository'];
type Auth = Parameters<MakeRepository>[0];
type Keys = Extract<Auth['keys'], { transaction: unknown }>;

export interface BeforeUse {
  /** Resolves when messages may be taken in. Until then they count as not received, and come again. */
  mayTakeIn(): Promise<void>;
  /** Stores a decrypted message. When it rejects, the session does not advance. */
  decrypted(ciphertext: Uint8Array, plaintext: Uint8Array, keys: Keys): Promise<void>;
}

export function storingFirst(before: BeforeUse): MakeRepository {
  return (auth, logger, pnToLid) => {
    // The library makes them so.
    const keys = auth.keys as Keys;
    /** A message on an existing session is being decrypted; nothing else runs at the same time. */
    let isDecrypting = false;
    const set = async (data: SignalDataSet) =>
      keys.set(isDecrypting ? await withUnusedRestored(keys, data) : data);
    const inner = DEFAULT_CONNECTION_CONFIG.makeSignalRepository(
      { ...auth, keys: { ...keys, set } },
      logger,
      pnToLid,
    );
    // Two operations that read the same session would undo each other's writes.
    const alone = createMutex();
    // The library finds its transaction through the async context. Outside there is none, so an operation
    // within a send commits at once, and not when the send is over.
    const outside = new AsyncResource('whatsapp-signal');
    const runAlone = <T>(work: () => Promise<T>) => outside.runInAsyncScope(() => alone(work));

    async function decrypt(of: string, ciphertext: Uint8Array, work: () => Promise<Uint8Array>) {
      await before.mayTakeIn();
      return runAlone(() =>
        keys.transaction(async () => {
          const plaintext = await work();
          await before.decrypted(ciphertext, plaintext, keys);
          return plaintext;
        }, of),
      );
    }

    // A person's first messages could overtake each other while their two addresses are being stored.
    const { lidMapping } = inner;
    const note = lidMapping.storeLIDPNMappings.bind(lidMapping);
    const inTurn = createMutex();
    lidMapping.storeLIDPNMappings = (pairs) => inTurn(() => note(pairs));

    return {
      ...inner,
      decryptMessage: (of) =>
        decrypt(of.jid, of.ciphertext, async () => {
          isDecrypting = of.type === 'msg';
          try {
            return await inner.decryptMessage(of);
          } finally {
            isDecrypting = false;
          }
        }),
      decryptGroupMessage: (of) => decrypt(of.group, of.msg, () => inner.decryptGroupMessage(of)),
      encryptMessage: (of) => runAlone(() => inner.encryptMessage(of)),
      encryptGroupMessage: (of) => runAlone(() => inner.encryptGroupMessage(of)),
      injectE2ESession: (of) => runAlone(() => inner.injectE2ESession(of)),
      migrateSession: (from, to) => runAlone(() => inner.migrateSession(from, to)),
      deleteSession: (jids) => runAlone(() => inner.deleteSession(jids)),
    };
  };
}

async function withUnusedRestored(keys: Keys, data: SignalDataSet): Promise<SignalDataSet> {
  const written = data.session;
  if (written === undefined) return data;
  const before = await keys.get('session', Object.keys(written));
  const restored = Object.entries(written).map(
    ([id, record]) => [id, restoreUnused(before[id], record)] as const,
  );
  return { ...data, session: Object.fromEntries(restored) as NonNullable<SignalDataSet['session']> };
}

/** A record as libsignal writes it; only the fields needed here. */
interface Written {
  _sessions: Record<string, { indexInfo: { used: number } }>;
}

/**
 * `after`, but with every session that did not decrypt the message restored from `before`. libsignal tries each
 * session of a person in turn and also changes those that fail: the open one would move to a ratchet that nobody
 * else knows, and our messages would become unreadable.
 */
export function restoreUnused(before: unknown, after: unknown): unknown {
  if (!isWritten(before) || !isWritten(after)) return after;
  const sessions = Object.entries(after._sessions).map(([key, session]) => {
    const earlier = before._sessions[key];
    // libsignal increments the counter of the one that decrypted it.
    return [key, earlier?.indexInfo.used === session.indexInfo.used ? earlier : session] as const;
  });
  return { ...after, _sessions: Object.fromEntries(sessions) };
}

function isWritten(record: unknown): record is Written {
  if (typeof record !== 'object' || record === null || !('_sessions' in record)) return false;
  const sessions: unknown = record._sessions;
  return (
    typeof sessions === 'object' &&
    sessions !== null &&
    Object.values(sessions).every((session) => typeof session?.indexInfo?.used === 'number')
  );
}
