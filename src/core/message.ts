/** What comes in from a platform, after the channel's `inbound` has put it into our words. */

/** An address is the platform's own id for a chat or a person, as the channel wants it back when sending. */
export type Address = string;

export interface InboundMessage {
  kind: 'message';
  chat: { address: Address; kind: 'direct' | 'group'; title: string };
  /** Topic or thread; null for the chat itself. */
  threadId: string | null;
  platformMessageId: string;
  sender: {
    address: Address;
    name: string;
    /** True where the message itself proves it (an anonymous administrator); else ask the channel. */
    administrator: boolean;
  };
  /** Never trimmed of what was said; the mention of our own bot may stand in it. */
  text: string;
  /** The platform's time, ms; 0 where it tells none. */
  sentAt: number;
  /** Our account was named by the platform's own mention. */
  mentionsBot: boolean;
  replyTo: ReplyTo | null;
}

/** The message that this one answers. */
export interface ReplyTo {
  platformMessageId: string;
  senderName: string;
  text: string;
  /** Sent by our own account: then it counts as a mention, and addresses the persona that wrote it. */
  ours: boolean;
}

/** A person changed a message. Unknown ids are ignored. */
export interface InboundEdit {
  kind: 'edit';
  chat: { address: Address; kind: 'direct' | 'group' };
  sender: { address: Address };
  platformMessageId: string;
  text: string;
  mentionsBot: boolean;
  editedAt: number;
}

/** The platform moved a chat to another id (Telegram's `migrate_to_chat_id`). */
export interface InboundMove {
  kind: 'moved';
  from: Address;
  to: Address;
}

export type InboundEvent = InboundMessage | InboundEdit | InboundMove;

/** What the platform gave in one go. With the cursor it becomes one transaction. */
export interface InboundBatch {
  channel: string;
  /** Which account of the platform received it; messages are unique per account. */
  account: string;
  events: InboundEvent[];
  /** Where to go on after a restart (Telegram's next offset); opaque to the store. */
  cursor?: string;
  /** What piled up while the channel was away: then it has waited since it was sent. */
  piledUp?: boolean;
}
