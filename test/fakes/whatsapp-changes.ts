/**
 * Changes of our messages, as phones take them: an edit (`protocolMessage` of type 14) and a deletion for everybody
 * (type 0), each a message with an id of its own that names the first one (Baileys rc14, `generateWAMessageContent` with
 * `edit` and `delete`). WhatsApp acknowledges every change; one that phones do not follow is seen by nobody, and its
 * sender hears nothing of that (mautrix/whatsapp#780, openclaw/openclaw#14344, tulir/whatsmeow#83).
 */
import { normalizeMessageContent, proto } from '@whiskeysockets/baileys';
import { readContent } from './whatsapp-contents.js';
import type { SentMessage } from './whatsapp-words.js';

export const { MESSAGE_EDIT, REVOKE } = proto.Message.ProtocolMessage.Type;

/** https://faq.whatsapp.com/6614640168569481 */
const EDITABLE_MS = 15 * 60_000;
/** By openclaw/openclaw#14344; WhatsApp itself says "a little over two days". */
const DELETABLE_MS = 48 * 3_600_000;

/** The server reads no content: this attribute says so (Baileys, `sendMessage`; whatsmeow, `getEditAttribute`). */
const ATTRIBUTE = new Map([
  [MESSAGE_EDIT, '1'],
  [REVOKE, '7'],
]);

/** A change of a message that stands already, if the content is one. */
export function changeIn(content: proto.IMessage): proto.Message.IProtocolMessage | null {
  return normalizeMessageContent(content)?.protocolMessage ?? null;
}

/** Changes the message. Returns why phones leave it as it is; null if they follow. */
export function applyChange(
  changed: SentMessage | undefined,
  { key, type, editedMessage }: proto.Message.IProtocolMessage,
  { edit, isAgain, now }: { edit: string | undefined; isAgain: boolean; now: number },
): string | null {
  if (changed === undefined) return 'a change of a message that is not there';
  if (!key?.fromMe) return "a change of somebody else's message";
  const expected = ATTRIBUTE.get(type ?? REVOKE);
  // Asked for again, it comes without that (Baileys, `sendMessagesAgain`).
  if (expected === undefined || (edit !== expected && !isAgain))
    return 'a change that is not announced as one';
  const age = now - changed.at;
  if (type === MESSAGE_EDIT) return edited(changed, editedMessage, age);
  if (age > DELETABLE_MS) return 'a deletion of a message that is too old';
  changed.revoked = true;
  return null;
}

function edited(
  changed: SentMessage,
  content: proto.IMessage | null | undefined,
  age: number,
): string | null {
  if (age > EDITABLE_MS) return 'an edit of a message that is too old';
  if (changed.revoked) return 'an edit of a message that was deleted';
  const { kind, text } = readContent(content ?? {});
  if (kind !== 'text' || changed.kind !== 'text' || text === '') return 'an edit that is not one of words';
  changed.text = text;
  changed.edited = true;
  return null;
}
