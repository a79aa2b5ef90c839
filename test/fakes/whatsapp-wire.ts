/** One connection to the fake WhatsApp: frames, the handshake, then stanzas both ways, each side's in order. */
import { type BinaryNode, decodeBinaryNode, encodeBinaryNode, type proto } from '@whiskeysockets/baileys';
import type { WebSocket } from 'ws';
import { type Cipher, INTRODUCTION, type ServerKeys, startHandshake } from './whatsapp-noise.js';

export interface Wire {
  /** The static key it proved. */
  clientKey: Buffer;
  payload: proto.ClientPayload;
  open(): boolean;
  send(node: BinaryNode): void;
  /** Ends it properly, after what was sent. */
  end(): void;
  /** Breaks it. */
  destroy(): void;
}

export interface WireHandlers {
  opened(wire: Wire): void;
  /** One after the other: the next stanza waits for it. */
  received(wire: Wire, node: BinaryNode): Promise<void> | void;
  closed(wire: Wire): void;
  /** What one side sent could not be understood; the connection is broken then. */
  confused(error: unknown): void;
}

/** More than any stanza is. */
const LONGEST_FRAME = 1 << 24;

/** Then a version, a length of three bytes, and so many. */
const ROUTED = 'ED';

function framed(bytes: Uint8Array): Buffer {
  if (bytes.length >= LONGEST_FRAME) throw new Error('a frame that is too long');
  const length = Buffer.alloc(3);
  length.writeUIntBE(bytes.length, 0, 3);
  return Buffer.concat([length, bytes]);
}

export function speakOver(socket: WebSocket, keys: ServerKeys, handlers: WireHandlers): void {
  const handshake = startHandshake(keys);
  let incoming = Buffer.alloc(0);
  let introduced = false;
  /** Ended by us: what still comes is nobody's. */
  let over = false;
  let greeted = false;
  let wire: Wire | null = null;
  let cipher: Cipher | null = null;
  let before: Promise<void> = Promise.resolve();

  const confused = (error: unknown) => {
    handlers.confused(error);
    socket.terminate();
  };
  const isOpen = () => socket.readyState === socket.OPEN;

  function frame(bytes: Buffer): void {
    if (!greeted) {
      greeted = true;
      socket.send(framed(handshake.hello(bytes)));
    } else if (wire === null || cipher === null) {
      const finished = handshake.finish(bytes);
      const mine = finished.cipher;
      cipher = mine;
      wire = {
        clientKey: finished.clientKey,
        payload: finished.payload,
        open: isOpen,
        send(node) {
          if (isOpen()) socket.send(framed(mine.encrypt(encodeBinaryNode(node))));
        },
        end() {
          over = true;
          socket.close();
        },
        destroy() {
          over = true;
          socket.terminate();
        },
      };
      handlers.opened(wire);
    } else {
      const plain = cipher.decrypt(bytes);
      const self = wire;
      before = before
        .then(async () => {
          const node = await decodeBinaryNode(plain);
          if (!over) await handlers.received(self, node);
        })
        .catch(confused);
    }
  }

  /** Takes what stands before the first frame: whom a client was led to before, if it was, and the version. */
  function introduce(): void {
    const routed = incoming.subarray(0, 2).toString() === ROUTED;
    const start = routed && incoming.length >= 7 ? 7 + incoming.readUIntBE(4, 3) : routed ? Infinity : 0;
    const end = start + INTRODUCTION.length;
    if (incoming.length < end) return;
    if (!incoming.subarray(start, end).equals(INTRODUCTION)) throw new Error('no introduction');
    introduced = true;
    incoming = incoming.subarray(end);
  }

  socket.on('message', (data: Buffer) => {
    incoming = Buffer.concat([incoming, data]);
    try {
      if (!introduced) introduce();
      while (introduced && incoming.length >= 3 && incoming.length >= 3 + incoming.readUIntBE(0, 3)) {
        const end = 3 + incoming.readUIntBE(0, 3);
        const bytes = incoming.subarray(3, end);
        incoming = incoming.subarray(end);
        frame(bytes);
      }
    } catch (error) {
      confused(error);
    }
  });
  socket.on('error', () => socket.terminate());
  socket.on('close', () => {
    if (wire !== null) handlers.closed(wire);
  });
}
