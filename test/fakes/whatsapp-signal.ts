/**
 * A phone's Signal keys and sessions. It is what Baileys makes of libsignal, over keys in memory; the phone knows
 * one other side, our gateway's device, by an address of its own choice.
 */
import {
  Curve,
  DEFAULT_CONNECTION_CONFIG,
  encodeWAMessage,
  generateRegistrationId,
  generateSignalPubKey,
  type KeyPair,
  proto,
  type SignalDataTypeMap,
  type SignalKeyStoreWithTransaction,
  unpadRandomMax16,
  writeRandomPadMax16,
} from '@whiskeysockets/baileys';
import { restoreUnused } from '../../src/channels/whatsapp/signal.js';

type KeyType = keyof SignalDataTypeMap;

/** Keys without their version byte, as they stand in stanzas. */
export interface KeyBundle {
  registrationId: number;
  identity: Uint8Array;
  signed: { id: number; key: Uint8Array; signature: Uint8Array };
  once: { id: number; key: Uint8Array } | null;
}

export interface Sealed {
  type: 'pkmsg' | 'msg' | 'skmsg';
  bytes: Buffer;
}

export interface SignalPhone {
  identity: KeyPair;
  /** With a one-time key that was not given away before. */
  bundle(): Promise<KeyBundle>;
  /** For the gateway's device; without a session one is begun with the bundle, which is fetched then. */
  /** `more`: fields that the library's protocol does not know. */
  seal(content: proto.IMessage, bundle: () => KeyBundle, more?: Uint8Array): Promise<Sealed>;
  unseal(sealed: Sealed): Promise<proto.IMessage>;
  /** For a group; with what the gateway needs in order to read it, if it was not given that yet, or `anew`. */
  sealForGroup(
    group: string,
    content: proto.IMessage,
    anew: boolean,
  ): Promise<{ sealed: Sealed; key: Uint8Array | null }>;
  unsealFromGroup(group: string, sealed: Sealed): Promise<proto.IMessage>;
  /** The session with the gateway's device is gone. */
  forget(): Promise<void>;
  /** As `forget`, and keys of groups are handed out again: it is another device, or one that lost them. */
  begin(): Promise<void>;
}

/** The gateway's device, and the phone itself in its own groups. */
const GATEWAY = '1:1@lid';
const SELF = '2@lid';
const SIGNED_KEY = 1;

const nothing = () => {};
const SILENT: (typeof DEFAULT_CONNECTION_CONFIG)['logger'] = {
  level: 'silent',
  child: () => SILENT,
  trace: nothing,
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing,
};

export function makeSignalPhone(): SignalPhone {
  const identity = Curve.generateKeyPair();
  const signedKey = Curve.generateKeyPair();
  /** Made when somebody wants it: it takes longer than all the rest. */
  let signature: Uint8Array | null = null;
  const registrationId = generateRegistrationId();
  const { keys, drop, whileTrying } = keysInMemory();
  const repository = DEFAULT_CONNECTION_CONFIG.makeSignalRepository(
    {
      creds: {
        signedIdentityKey: identity,
        signedPreKey: { keyId: SIGNED_KEY, keyPair: signedKey, signature: new Uint8Array() },
        registrationId,
      },
      keys,
    },
    SILENT,
  );
  const informed = new Set<string>();
  let nextKey = 1;
  let before: Promise<unknown> = Promise.resolve();

  /** One after the other: sealing and unsealing both move the session on. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = before.then(work);
    before = done.catch(() => {});
    return done;
  }

  return {
    identity,

    async bundle() {
      signature ??= Curve.sign(identity.private, generateSignalPubKey(signedKey.public));
      const id = nextKey++;
      const once = Curve.generateKeyPair();
      await keys.set({ 'pre-key': { [id]: once } });
      return {
        registrationId,
        identity: identity.public,
        signed: { id: SIGNED_KEY, key: signedKey.public, signature },
        once: { id, key: once.public },
      };
    },

    seal: (content, bundle, more = new Uint8Array()) =>
      inTurn(async () => {
        const { exists } = await repository.validateSession(GATEWAY);
        if (!exists) await repository.injectE2ESession({ jid: GATEWAY, session: sessionWith(bundle()) });
        const encoded = proto.Message.encode(content).finish();
        const data = writeRandomPadMax16(Buffer.concat([encoded, more]));
        const { type, ciphertext } = await repository.encryptMessage({ jid: GATEWAY, data });
        return { type, bytes: Buffer.from(ciphertext) };
      }),

    unseal: ({ type, bytes }) =>
      inTurn(async () => {
        if (type === 'skmsg') throw new Error('a message for a group where one for a person was expected');
        const decrypt = () => repository.decryptMessage({ jid: GATEWAY, type, ciphertext: bytes });
        const plain = await (type === 'msg' ? whileTrying(decrypt) : decrypt());
        const content = proto.Message.decode(unpadRandomMax16(plain));
        const item = (content.deviceSentMessage?.message ?? content).senderKeyDistributionMessage;
        if (item) await repository.processSenderKeyDistributionMessage({ authorJid: GATEWAY, item });
        return content;
      }),

    sealForGroup: (group, content, anew) =>
      inTurn(async () => {
        const data = encodeWAMessage(content);
        const made = await repository.encryptGroupMessage({ group, meId: SELF, data });
        const key = informed.has(group) && !anew ? null : made.senderKeyDistributionMessage;
        informed.add(group);
        return { sealed: { type: 'skmsg', bytes: Buffer.from(made.ciphertext) }, key };
      }),

    unsealFromGroup: (group, { bytes }) =>
      inTurn(async () => {
        const plain = await repository.decryptGroupMessage({ group, authorJid: GATEWAY, msg: bytes });
        return proto.Message.decode(unpadRandomMax16(plain));
      }),

    forget: () => inTurn(() => repository.deleteSession([GATEWAY])),

    begin: () =>
      inTurn(async () => {
        informed.clear();
        await repository.deleteSession([GATEWAY]);
        drop('identity-key');
        drop('sender-key');
      }),
  };
}

function sessionWith({ registrationId, identity, signed, once }: KeyBundle) {
  return {
    registrationId,
    identityKey: generateSignalPubKey(identity),
    signedPreKey: {
      keyId: signed.id,
      publicKey: generateSignalPubKey(signed.key),
      signature: signed.signature,
    },
    ...(once === null ? {} : { preKey: { keyId: once.id, publicKey: generateSignalPubKey(once.key) } }),
  };
}

function keysInMemory() {
  const shelves = new Map<KeyType, Map<string, unknown>>();
  let trying = false;
  const shelf = (type: KeyType) => {
    const found = shelves.get(type) ?? new Map<string, unknown>();
    shelves.set(type, found);
    return found;
  };
  const keys: SignalKeyStoreWithTransaction = {
    get<T extends keyof SignalDataTypeMap>(type: T, ids: string[]) {
      const found = ids.flatMap((id) => {
        const value = shelf(type).get(id);
        return value === undefined ? [] : [[id, value]];
      });
      return Object.fromEntries(found) as { [id: string]: SignalDataTypeMap[T] };
    },
    set(data) {
      for (const [type, values] of Object.entries(data)) {
        for (const [id, value] of Object.entries(values)) {
          if (value === null) shelf(type as KeyType).delete(id);
          // A phone's own encryption leaves no marks on sessions that a message did not fit; this library does.
          else if (trying && type === 'session')
            shelf(type).set(id, restoreUnused(shelf(type).get(id), value));
          else shelf(type as KeyType).set(id, value);
        }
      }
    },
    isInTransaction: () => false,
    transaction: (work) => work(),
  };
  return {
    keys,
    drop: (type: KeyType) => shelf(type).clear(),
    /** Runs what tries a message on one session after the other. */
    async whileTrying<Result>(work: () => Promise<Result>): Promise<Result> {
      trying = true;
      try {
        return await work();
      } finally {
        trying = false;
      }
    },
  };
}
