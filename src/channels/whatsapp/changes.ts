/** Reactions, edits and deletions: messages that change another, which stands in a chat. Pure. */
import { proto } from '@whiskeysockets/baileys';
import type { Recipient } from '../../core/channel.js';
import type { Address } from '../../core/message.js';
import type { Directory } from './directory.js';
import { changeId } from './ids.js';

const { REVOKE, MESSAGE_EDIT } = proto.Message.ProtocolMessage.Type;

/**
 * WhatsApp takes later changes, too, but phones do not follow them, and nobody is told. Less than a quarter of an hour,
 * because the phone's clock counts.
 */
const EDITABLE_MS = 15 * 60_000 - 20_000;
const DELETABLE_MS = 48 * 3_600_000;

/** A message that is sent in place of a part. */
export interface Change {
  message: proto.IMessage;
  /** Default: made of the key of the send. */
  id?: string;
  /** Tells the server, which cannot read the message, that it edits (1) or deletes (7) another. */
  kind?: '1' | '7';
  /** The message that is changed: its changes are written in turn. */
  of?: string;
}

export function isEditable(sentAt: number, now: number): boolean {
  return now - sentAt < EDITABLE_MS;
}

export function isDeletable(sentAt: number, now: number): boolean {
  return now - sentAt < DELETABLE_MS;
}

/** The words replace those of our message. Each edit has an id of its own, as phones take an id once. */
export function editOf(
  address: Address,
  of: string,
  { words, now, mark }: { words: proto.IMessage; now: number; mark: string },
): Change {
  const key = { remoteJid: address, fromMe: true, id: of };
  const change = { key, type: MESSAGE_EDIT, editedMessage: words, timestampMs: now };
  const message = { protocolMessage: proto.Message.ProtocolMessage.create(change) };
  return { message, id: changeId(mark, of, now), kind: '1', of };
}

/** For everybody. */
export function deletionOf(address: Address, of: string, mark: string): Change {
  const key = { remoteJid: address, fromMe: true, id: of };
  const message = { protocolMessage: proto.Message.ProtocolMessage.create({ key, type: REVOKE }) };
  return { message, id: changeId(mark, of, null), kind: '7', of };
}

/** Our reaction; null if the message it is for is no longer known. */
export function reactionTo(
  directory: Directory,
  { address, kind }: Recipient,
  id: string,
  emoji: string,
  senderTimestampMs: number,
): Change | null {
  const known = directory.quotable(address, id)?.key;
  // In a group the key needs the author, so only a message received since the start can be named.
  const key = known ?? (kind === 'direct' ? { remoteJid: address, fromMe: false, id } : null);
  if (key === null) return null;
  const reaction = { key, text: emoji, senderTimestampMs };
  return { message: { reactionMessage: proto.Message.ReactionMessage.create(reaction) } };
}
