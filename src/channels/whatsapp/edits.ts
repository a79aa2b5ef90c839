/** Edits as they come since May 2026, encrypted with the secret of the message that they change. Pure. */
import { aesDecryptGCM, hkdf, proto } from '@whiskeysockets/baileys';
import { contentOf } from './content.js';
import { isSamePerson, type Person } from './jid.js';
import type { Content } from './payload.js';
import type { Secret } from './secrets.js';

const { MESSAGE_EDIT } = proto.Message.ProtocolMessage.Type;
const SEALED_EDIT = proto.Message.SecretEncryptedMessage.SecretEncType.MESSAGE_EDIT;

export type Sealed = NonNullable<Content['secretEncryptedMessage']>;

/** The same edit in the form that it had before; null where it cannot be read, or is none of its sender's. */
export function openEdit(sealed: Sealed, editor: Person, secrets: Secret[]): proto.IMessage | null {
  if (sealed.secretEncType !== SEALED_EDIT) return null;
  const { targetMessageKey, encPayload, encIv } = sealed;
  for (const { author, bytes } of secrets) {
    // Everybody in a group has the secret; only who wrote the message may change it.
    if (!isSamePerson(editor, author)) continue;
    for (const info of infosOf(targetMessageKey.id, editor)) {
      const edited = decrypted(encPayload, encIv, hkdf(bytes, 32, { info }));
      if (edited !== null) return editOf(targetMessageKey.id, edited);
    }
  }
  return null;
}

/** The writer stands in it twice, as the author and as the editor, each time in either form of their address. */
function infosOf(id: string, { lid, phone }: Person): string[] {
  const forms = [lid, phone].filter((form) => form !== null);
  return forms.flatMap((author) => forms.map((editor) => `${id}${author}${editor}Message Edit`));
}

function decrypted(payload: Uint8Array, iv: Uint8Array, key: Uint8Array): proto.Message | null {
  try {
    return proto.Message.decode(aesDecryptGCM(payload, key, iv, Buffer.alloc(0)));
  } catch {
    return null;
  }
}

/** What it changes is said by the envelope, with whose secret it could be opened. */
function editOf(id: string, message: proto.Message): proto.IMessage {
  const change = contentOf(message)?.protocolMessage;
  const editedMessage = change?.editedMessage ?? message;
  const timestampMs = change?.timestampMs;
  const edit = { key: { id, fromMe: true }, type: MESSAGE_EDIT, editedMessage };
  return { protocolMessage: timestampMs === undefined ? edit : { ...edit, timestampMs } };
}
