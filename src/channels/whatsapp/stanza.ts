/** A message as it was decrypted, with what stands on its envelope, in the library's form. */
import {
  type BinaryNode,
  decodeMessageNode,
  proto,
  unpadRandomMax16,
  type WAMessage,
} from '@whiskeysockets/baileys';
import type { Me } from './scene.js';

/** null for what cannot be read: the library finds that out, too, and acts on it. */
export function messageIn(stanza: BinaryNode, plaintext: Uint8Array, me: Me): WAMessage | null {
  try {
    const { fullMessage } = decodeMessageNode(stanza, me.phone, me.lid ?? '');
    const content = proto.Message.decode(unpadRandomMax16(plaintext));
    return {
      ...fullMessage,
      key: { ...fullMessage.key, ...otherAddressOf(stanza, fullMessage) },
      // What our phone sent is wrapped once more.
      message: content.deviceSentMessage?.message ?? content,
    };
  } catch {
    return null;
  }
}

/** In what our own account sent, the library takes the sender's other address for the chat's. */
function otherAddressOf({ attrs }: BinaryNode, { key }: WAMessage): { remoteJidAlt?: string } {
  if (!key.fromMe || !attrs.recipient) return {};
  const other =
    attrs.recipient_pn ?? attrs.peer_recipient_pn ?? attrs.recipient_lid ?? attrs.peer_recipient_lid;
  return other === undefined ? {} : { remoteJidAlt: other };
}
