/**
 * The server's side of WhatsApp's handshake (Noise XX: Curve25519, AES-GCM, SHA-256), and the cipher it ends in.
 * Whoever connects proves a static key by it, and hands in what it wants to be.
 */
import {
  aesDecryptGCM,
  aesEncryptGCM,
  Curve,
  hkdf,
  type KeyPair,
  proto,
  sha256,
} from '@whiskeysockets/baileys';

const MODE = Buffer.from('Noise_XX_25519_AESGCM_SHA256\0\0\0\0');
const NONE = Buffer.alloc(0);

/** What stands before the first frame of a client. */
export const INTRODUCTION = Buffer.from([0x57, 0x41, 6, 3]);

export interface ServerKeys {
  noise: KeyPair;
  certificates: Uint8Array;
}

/** A key for handshakes with a chain of certificates for it; the root is our own. */
export function makeServerKeys(): ServerKeys {
  const [root, intermediate, noise] = [1, 2, 3].map(() => Curve.generateKeyPair()) as [
    KeyPair,
    KeyPair,
    KeyPair,
  ];
  const details = (serial: number, issuerSerial: number, key: Uint8Array) =>
    proto.CertChain.NoiseCertificate.Details.encode({ serial, issuerSerial, key }).finish();
  const ofIntermediate = details(1, 0, intermediate.public);
  const ofLeaf = details(2, 1, noise.public);
  const certificates = proto.CertChain.encode({
    intermediate: { details: ofIntermediate, signature: Curve.sign(root.private, ofIntermediate) },
    leaf: { details: ofLeaf, signature: Curve.sign(intermediate.private, ofLeaf) },
  }).finish();
  return { noise, certificates };
}

export interface Cipher {
  encrypt(plain: Uint8Array): Buffer;
  decrypt(sealed: Uint8Array): Buffer;
}

export interface Handshake {
  /** Answers the client's first message. */
  hello(message: Uint8Array): Uint8Array;
  /** Takes its second: who it is, what it wants, and the cipher from here on. */
  finish(message: Uint8Array): { clientKey: Buffer; payload: proto.ClientPayload; cipher: Cipher };
}

export function startHandshake(keys: ServerKeys): Handshake {
  const ephemeral = Curve.generateKeyPair();
  let hash: Buffer = MODE;
  let salt: Buffer = MODE;
  let key: Buffer = MODE;
  let counter = 0;
  let clientEphemeral: Uint8Array = NONE;

  const authenticate = (bytes: Uint8Array) => {
    hash = sha256(Buffer.concat([hash, bytes]));
  };
  const derive = (bytes: Uint8Array): [Buffer, Buffer] => {
    const derived = Buffer.from(hkdf(bytes, 64, { salt, info: '' }));
    return [derived.subarray(0, 32), derived.subarray(32)];
  };
  const mix = (privateKey: Uint8Array, publicKey: Uint8Array) => {
    [salt, key] = derive(Curve.sharedKey(privateKey, publicKey));
    counter = 0;
  };
  const seal = (plain: Uint8Array) => {
    const sealed = aesEncryptGCM(plain, key, initialVector(counter++), hash);
    authenticate(sealed);
    return sealed;
  };
  const open = (sealed: Uint8Array) => {
    const plain = aesDecryptGCM(sealed, key, initialVector(counter++), hash);
    authenticate(sealed);
    return plain;
  };

  authenticate(INTRODUCTION);
  return {
    hello(message) {
      const { clientHello } = proto.HandshakeMessage.decode(message);
      clientEphemeral = clientHello?.ephemeral ?? NONE;
      authenticate(clientEphemeral);
      authenticate(ephemeral.public);
      mix(ephemeral.private, clientEphemeral);
      const sealedStatic = seal(keys.noise.public);
      mix(keys.noise.private, clientEphemeral);
      const payload = seal(keys.certificates);
      const serverHello = { ephemeral: ephemeral.public, static: sealedStatic, payload };
      return proto.HandshakeMessage.encode({ serverHello }).finish();
    },

    finish(message) {
      const { clientFinish } = proto.HandshakeMessage.decode(message);
      const clientKey = open(clientFinish?.static ?? NONE);
      mix(ephemeral.private, clientKey);
      const payload = proto.ClientPayload.decode(open(clientFinish?.payload ?? NONE));
      const [reading, writing] = derive(NONE);
      let read = 0;
      let written = 0;
      return {
        clientKey,
        payload,
        cipher: {
          encrypt: (plain) => aesEncryptGCM(plain, writing, initialVector(written++), NONE),
          decrypt: (sealed) => aesDecryptGCM(sealed, reading, initialVector(read++), NONE),
        },
      };
    },
  };
}

function initialVector(counter: number): Buffer {
  const vector = Buffer.alloc(12);
  vector.writeUInt32BE(counter, 8);
  return vector;
}
