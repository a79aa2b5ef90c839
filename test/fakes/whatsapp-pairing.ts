/** How a gateway becomes a device of our account: the own phone scans its QR code, or takes its pairing code. */
import { createHmac, randomBytes } from 'node:crypto';
import {
  aesDecryptCTR,
  aesDecryptGCM,
  aesEncryptCTR,
  type BinaryNode,
  Curve,
  derivePairingCodeKey,
  encodeBigEndian,
  hkdf,
  jidEncode,
  type KeyPair,
  proto,
  S_WHATSAPP_NET,
} from '@whiskeysockets/baileys';
import { answer, bytesOf, child, needed, numberIn, refusal, seconds, stanza } from './whatsapp-nodes.js';
import type { Person } from './whatsapp-people.js';
import type { KeyBundle } from './whatsapp-signal.js';
import type { Wire } from './whatsapp-wire.js';
import type { Faults } from './whatsapp-words.js';

/** The gateway, once it is linked. */
export interface Companion {
  device: number;
  /** The static key it has to prove. */
  clientKey: Buffer;
  registrationId: number;
  identity: Uint8Array;
  signed: KeyBundle['signed'];
  /** One-time keys that nobody was given yet. */
  once: { id: number; key: Uint8Array }[];
}

/** A connection that wants to be linked. */
interface Applicant {
  wire: Wire;
  refs: string[];
  registration: proto.ClientPayload.IDevicePairingRegistrationData;
  /** The QR code whose secret was retired. */
  retired: string | null;
  /** By code: what it sent first. */
  wrapped: { key: Buffer; jid: string } | null;
  /** What waits for its next word. */
  expects: { what: 'companion_finish' | 'pair-device-sign'; come(node: BinaryNode): void } | null;
  gone: (() => void)[];
}

export interface Pairing {
  begin(wire: Wire): void;
  /** Whether the stanza belonged to it. */
  received(wire: Wire, node: BinaryNode): boolean;
  closed(wire: Wire): void;
  refs(): string[];
  /** Somebody asked for a pairing code. */
  asked(): boolean;
  scan(qr: string): Promise<void>;
  enterCode(code: string): Promise<void>;
  meets: Pick<Faults, 'askPasskey' | 'refuseCode' | 'tooManyDevices' | 'refreshRegistration' | 'codesRunOut'>;
}

const REFS = 6;
/** What stands before the details that the account signs. */
const ACCOUNT_SIGNATURE = Buffer.from([6, 0]);

/** `linked` hears of a device that was taken on, before it is told to log in. */
export function makePairing(own: Person, linked: (companion: Companion) => void): Pairing {
  const applicants = new Map<Wire, Applicant>();
  const account = own.phone.identity;
  const user = own.peer.pn.split('@')[0] ?? '';
  const lidUser = own.peer.lid.split('@')[0] ?? '';
  let devices = 0;
  let queries = 0;
  let wantsPasskey = false;
  let hasTooMany = false;
  const codeRefusals: number[] = [];

  /** Resolves with its next stanza of that kind. */
  function next(applicant: Applicant, what: 'companion_finish' | 'pair-device-sign'): Promise<BinaryNode> {
    return new Promise((resolve, reject) => {
      applicant.expects = { what, come: resolve };
      applicant.gone.push(() => reject(new Error(`the gateway hung up before ${what}`)));
    });
  }

  async function admit(applicant: Applicant, adv: Uint8Array): Promise<void> {
    const { wire, registration } = applicant;
    const identity = Buffer.from(registration.eIdent ?? []);
    devices += 1;
    const device = devices;
    const details = proto.ADVDeviceIdentity.encode({
      rawId: device,
      timestamp: Math.floor(Date.now() / 1000),
      keyIndex: device,
    }).finish();
    const signed = proto.ADVSignedDeviceIdentity.encode({
      details,
      accountSignatureKey: account.public,
      accountSignature: Curve.sign(account.private, Buffer.concat([ACCOUNT_SIGNATURE, details, identity])),
    }).finish();
    const sealed = proto.ADVSignedDeviceIdentityHMAC.encode({
      details: signed,
      hmac: createHmac('sha256', adv).update(signed).digest(),
    }).finish();
    const done = next(applicant, 'pair-device-sign');
    wire.send(
      stanza('iq', { from: S_WHATSAPP_NET, type: 'set', id: `pair-${queries++}`, t: seconds(Date.now()) }, [
        stanza('pair-success', {}, [
          stanza('device-identity', {}, sealed),
          stanza('device', {
            jid: jidEncode(user, 's.whatsapp.net', device),
            lid: jidEncode(lidUser, 'lid', device),
          }),
          stanza('platform', { name: 'android' }),
        ]),
      ]),
    );
    await done;
    applicants.delete(wire);
    if (hasTooMany) restart(wire);
    else take(applicant, device);
  }

  function take({ wire, registration }: Applicant, device: number): void {
    linked({
      device,
      clientKey: wire.clientKey,
      registrationId: numberIn(Buffer.from(registration.eRegid ?? [])),
      identity: Buffer.from(registration.eIdent ?? []),
      signed: {
        id: numberIn(Buffer.from(registration.eSkeyId ?? [])),
        key: registration.eSkeyVal ?? new Uint8Array(),
        signature: registration.eSkeySig ?? new Uint8Array(),
      },
      once: [],
    });
    restart(wire);
  }

  function restart(wire: Wire): void {
    wire.send(stanza('stream:error', { code: '515' }));
    wire.end();
  }

  function notify(wire: Wire, type: string, content: BinaryNode): void {
    const id = String(queries++);
    wire.send(stanza('notification', { from: S_WHATSAPP_NET, type, id, t: seconds(Date.now()) }, [content]));
  }

  function showCodes(wire: Wire, refs: string[]): void {
    wire.send(
      stanza('iq', { from: S_WHATSAPP_NET, type: 'set', id: `pair-${queries++}` }, [
        stanza(
          'pair-device',
          {},
          refs.map((ref) => stanza('ref', {}, Buffer.from(ref))),
        ),
      ]),
    );
  }

  return {
    begin(wire) {
      const refs = Array.from({ length: REFS }, () => `2@${randomBytes(24).toString('base64')}`);
      const registration = wire.payload.devicePairingData ?? {};
      const applicant = { wire, refs, registration, retired: null, wrapped: null, expects: null, gone: [] };
      applicants.set(wire, applicant);
      showCodes(wire, refs);
    },

    received(wire, node) {
      const applicant = applicants.get(wire);
      if (applicant === undefined) return false;
      const link = child(node, 'link_code_companion_reg');
      if (link?.attrs.stage === 'companion_hello') {
        const refused = codeRefusals.shift();
        if (refused !== undefined) {
          wire.send(refusal(node, refused, 'bad-request'));
          return true;
        }
        applicant.wrapped = {
          key: needed(link, 'link_code_pairing_wrapped_companion_ephemeral_pub'),
          jid: link.attrs.jid ?? '',
        };
        wire.send(
          answer(node, [
            stanza('link_code_companion_reg', { stage: 'companion_hello' }, [
              stanza('link_code_pairing_ref', {}, Buffer.from(applicant.refs[0] ?? '')),
            ]),
          ]),
        );
        return true;
      }
      const { expects } = applicant;
      const came = link?.attrs.stage ?? (child(node, 'pair-device-sign') ? 'pair-device-sign' : '');
      if (expects === null || came !== expects.what) return false;
      applicant.expects = null;
      if (came === 'companion_finish') wire.send(answer(node));
      expects.come(node);
      return true;
    },

    closed(wire) {
      for (const gone of applicants.get(wire)?.gone ?? []) gone();
      applicants.delete(wire);
    },

    asked: () => asking() !== undefined,
    refs: () => [...applicants.values()].flatMap(({ refs }) => refs),

    async scan(qr) {
      const [ref = '', noise, identity, adv = ''] = (qr.split('#')[1] ?? qr).split(',');
      const applicant = [...applicants.values()].find(({ refs }) => refs.includes(ref));
      if (applicant === undefined) throw new Error('this QR code is not shown by anybody who is connected');
      const shown = [
        Buffer.from(noise ?? '', 'base64').equals(applicant.wire.clientKey),
        Buffer.from(identity ?? '', 'base64').equals(applicant.registration.eIdent ?? Buffer.alloc(0)),
      ];
      if (applicant.retired === qr) throw new Error('the secret in this QR code was retired');
      if (shown.includes(false)) throw new Error('the keys in the QR code are not those of the connection');
      if (!wantsPasskey) await admit(applicant, Buffer.from(adv, 'base64'));
    },

    async enterCode(code) {
      const applicant = asking();
      if (!applicant?.wrapped) throw new Error(`no gateway asked for a code for ${own.peer.pn}`);
      if (wantsPasskey) {
        const hello = stanza('link_code_companion_reg', { stage: 'primary_hello' });
        notify(applicant.wire, 'link_code_companion_reg', hello);
        return;
      }
      const letters = code.replace(/[^0-9A-Z]/gi, '').toUpperCase();
      const companionKey = await unwrapKey(applicant.wrapped.key, letters);
      const ephemeral = Curve.generateKeyPair();
      const finished = next(applicant, 'companion_finish');
      notify(
        applicant.wire,
        'link_code_companion_reg',
        stanza('link_code_companion_reg', { stage: 'primary_hello' }, [
          stanza(
            'link_code_pairing_wrapped_primary_ephemeral_pub',
            {},
            await wrapKey(ephemeral.public, letters),
          ),
          stanza('primary_identity_pub', {}, account.public),
          stanza('link_code_pairing_ref', {}, Buffer.from(applicant.refs[0] ?? '')),
        ]),
      );
      const last = child(await finished, 'link_code_companion_reg');
      await admit(applicant, secretOf(last, ephemeral, companionKey));
    },

    meets: {
      askPasskey(on) {
        wantsPasskey = on;
      },
      refuseCode(code) {
        codeRefusals.push(code);
      },
      tooManyDevices(on) {
        hasTooMany = on;
      },
      refreshRegistration(qr) {
        for (const applicant of applicants.values()) {
          applicant.retired = qr;
          notify(applicant.wire, 'companion_reg_refresh', stanza('companion_reg_refresh'));
        }
      },
      codesRunOut() {
        // Six codes live for minutes; a client that is given none has none left.
        for (const { wire } of applicants.values()) showCodes(wire, []);
      },
    },
  };

  function asking(): Applicant | undefined {
    return [...applicants.values()].find(({ wrapped }) => wrapped?.jid === own.peer.pn);
  }

  /** The secret that both sides arrive at if the code was the same. */
  function secretOf(last: BinaryNode | undefined, ephemeral: KeyPair, companionKey: Buffer): Uint8Array {
    const shared = Curve.sharedKey(ephemeral.private, companionKey);
    const sealed = bytesOf(child(last, 'link_code_pairing_wrapped_key_bundle')) ?? Buffer.alloc(0);
    const key = hkdf(shared, 32, {
      salt: sealed.subarray(0, 32),
      info: 'link_code_pairing_key_bundle_encryption_key',
    });
    let bundle: Buffer;
    try {
      bundle = aesDecryptGCM(sealed.subarray(44), key, sealed.subarray(32, 44), Buffer.alloc(0));
    } catch {
      throw new Error('the code is not the one that the gateway shows');
    }
    const [companion, random] = [bundle.subarray(0, 32), bundle.subarray(64, 96)];
    const identities = Curve.sharedKey(account.private, companion);
    return hkdf(Buffer.concat([shared, identities, random]), 32, { info: 'adv_secret' });
  }
}

async function wrapKey(key: Uint8Array, code: string): Promise<Buffer> {
  const [salt, iv] = [randomBytes(32), randomBytes(16)];
  return Buffer.concat([salt, iv, aesEncryptCTR(key, await derivePairingCodeKey(code, salt), iv)]);
}

async function unwrapKey(wrapped: Buffer, code: string): Promise<Buffer> {
  const [salt, iv, sealed] = [wrapped.subarray(0, 32), wrapped.subarray(32, 48), wrapped.subarray(48, 80)];
  return aesDecryptCTR(sealed, await derivePairingCodeKey(code, salt), iv);
}

/** A key's number as it stands in a stanza. */
export function keyNumber(id: number, length = 3): Uint8Array {
  return encodeBigEndian(id, length);
}
