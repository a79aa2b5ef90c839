/**
 * An edit as phones send it since May 2026: encrypted with the secret of the message that it changes, under an id of its
 * own. The key is HKDF-SHA256 of the secret over "id, who wrote it, who edits it, Message Edit"; AES-256-GCM without
 * further data. Addresses stand in it without the device, in either form (WhiskeySockets/Baileys#2541, #2690;
 * oxidezap/whatsapp-rust#618). The plain text is a message with a `protocolMessage`.
 */
import { randomBytes } from 'node:crypto';
import { aesEncryptGCM, hkdf, proto } from '@whiskeysockets/baileys';
import { MESSAGE_EDIT } from './whatsapp-changes.js';

export function sealedEdit(edit: {
  key: proto.IMessageKey;
  secret: Uint8Array;
  /** The writer's address as the secret's, and as the edit's sender. */
  author: string;
  editor: string;
  text: string;
  at: number;
}): proto.IMessage {
  const { key, secret, author, editor, text, at } = edit;
  const protocolMessage = {
    key,
    type: MESSAGE_EDIT,
    editedMessage: { conversation: text },
    timestampMs: at,
  } satisfies proto.Message.IProtocolMessage;
  const plain = proto.Message.encode({ protocolMessage }).finish();
  const aesKey = hkdf(secret, 32, { info: `${key.id}${author}${editor}Message Edit` });
  const encIv = randomBytes(12);
  const encPayload = aesEncryptGCM(plain, aesKey, encIv, Buffer.alloc(0));
  const secretEncType = proto.Message.SecretEncryptedMessage.SecretEncType.MESSAGE_EDIT;
  return { secretEncryptedMessage: { targetMessageKey: key, encPayload, encIv, secretEncType } };
}
