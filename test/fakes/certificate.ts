/** A certificate authority for one run, and a certificate of it for servers on loopback: as much DER as that takes. */
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';

export interface Certificates {
  /** PEM */
  ca: string;
  cert: string;
  key: string;
}

const OIDS = {
  ecdsaWithSha256: [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02],
  commonName: [0x55, 0x04, 0x03],
  basicConstraints: [0x55, 0x1d, 0x13],
  alternativeNames: [0x55, 0x1d, 0x11],
};

const DAY = 86_400_000;

/** For the names, and for 127.0.0.1. */
export function makeCertificates(names: string[], now = Date.now()): Certificates {
  const authority = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const server = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const certificate = (serial: number, subject: string, publicKey: KeyObject, extensions: Buffer[]) => {
    const algorithm = sequence(oid(OIDS.ecdsaWithSha256));
    const body = sequence(
      tagged(0xa0, integer(2)),
      integer(serial),
      algorithm,
      nameOf('coterie test authority'),
      sequence(time(now - DAY), time(now + DAY)),
      nameOf(subject),
      publicKey.export({ type: 'spki', format: 'der' }),
      tagged(0xa3, sequence(...extensions)),
    );
    return pem(sequence(body, algorithm, bits(sign('sha256', body, authority.privateKey))));
  };
  const alternatives = [
    ...names.map((name) => tagged(0x82, Buffer.from(name))),
    tagged(0x87, Buffer.from([127, 0, 0, 1])),
  ];
  return {
    ca: certificate(1, 'coterie test authority', authority.publicKey, [
      extension(OIDS.basicConstraints, sequence(tagged(0x01, Buffer.from([0xff])))),
    ]),
    cert: certificate(2, 'coterie test server', server.publicKey, [
      extension(OIDS.alternativeNames, sequence(...alternatives)),
    ]),
    key: server.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

function tagged(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const length =
    content.length < 0x80
      ? [content.length]
      : content.length < 0x100
        ? [0x81, content.length]
        : [0x82, content.length >> 8, content.length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}

function sequence(...parts: Buffer[]): Buffer {
  return tagged(0x30, ...parts);
}

function integer(value: number): Buffer {
  return tagged(0x02, Buffer.from([value]));
}

function oid(bytes: number[]): Buffer {
  return tagged(0x06, Buffer.from(bytes));
}

function bits(bytes: Buffer): Buffer {
  return tagged(0x03, Buffer.from([0]), bytes);
}

function nameOf(common: string): Buffer {
  return sequence(tagged(0x31, sequence(oid(OIDS.commonName), tagged(0x0c, Buffer.from(common)))));
}

function time(ms: number): Buffer {
  const text = new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, '');
  return tagged(0x18, Buffer.from(text));
}

function extension(id: number[], value: Buffer): Buffer {
  return sequence(oid(id), tagged(0x04, value));
}

function pem(der: Buffer): string {
  const lines = der.toString('base64').replace(/.{64}/g, '$&\n');
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
}
