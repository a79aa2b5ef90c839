import type { ChoiceOutcome } from './channel.js';
import type { ChatRecord } from './chat-record.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { Address, InboundDeletion, InboundEdit, InboundMessage, InboundReaction } from './message.js';

/** Begins the ids of reactions, which are no platform's. */
export const BY_REACTION = 'reaction:';

/** An event: a history was imported, of which the persona may propose lines for its memory. */
export const HISTORY_IMPORTED = 'history_imported';

/** Never in the transcript, never sent to a model. */
export interface NewCommand {
  name: string;
  /** The text after the name, trimmed. */
  argument: string;
}

export interface StoredCommand extends NewCommand {
  id: number;
  room: RoomId;
  chat: ChatRecord;
  sender: { id: ChatId; name: string; administrator: boolean };
  platformMessageId: string;
  persona?: PersonaId;
  /** Inclusive. */
  afterMessage: number;
  /** Including this one. Above 1, its effects on files may exist already. */
  tries: number;
  crashes: number;
}

interface ReceiptSource {
  platformMessageId: string;
  dedupeKey?: string | undefined;
  sender: { id: ChatId; name: string; administrator: boolean; bot?: true };
}

export interface ReceiptOrigin extends ReceiptSource {
  chat: Omit<ChatRecord, 'activePersona' | 'invited' | 'away' | 'channel' | 'account'>;
  threadId: string | null;
}

interface Ends {
  endsQuestion?: number;
  endsOffers?: string[];
}

export type Receipt =
  | (Omit<InboundMessage, 'chat' | 'sender'> &
      ReceiptOrigin &
      Ends & {
        /** Absent: now. */
        receivedAt?: number;
        /** The sender's own, if `text` also describes files. */
        words?: string;
        quiet?: true;
        /** From a stranger, or forwarded. */
        tainted?: true;
      })
  | (ReceiptOrigin &
      Ends & {
        kind: 'command';
        command: NewCommand;
        persona?: PersonaId;
        /** Ignored if the question has ended. */
        answers?: number;
      })
  | ({
      /** Ends the offer and the question that asks the same, and runs the option's command for this person. */
      kind: 'choice';
      chat: { id: ChatId; address: Address };
      value: string;
      endsQuestion?: number;
    } & ReceiptSource)
  | {
      /** From inside the gateway: a message of the room, once per id, answered like any other. */
      kind: 'event';
      id: string;
      room: RoomId;
      /** `schedule`, `digest`, `task_completed`, `history_imported`. */
      about: string;
      text: string;
      /** null: the active one. */
      personaId: PersonaId | null;
      at: number;
      /** In the journal. Absent: the text. */
      content?: Record<string, unknown>;
      /** The call whose outcome this is. */
      actionId?: string;
      tainted?: true;
    }
  | {
      /** Once per key. The turn resumes, now or as soon as it is suspended. */
      kind: 'resume';
      waitsFor: string;
      content: string;
      failed: boolean;
      /** The wait timed out; ignored if nothing waits any more. */
      isTimeout?: true;
    }
  /** Ignored unless by the author. */
  | (Omit<InboundEdit, 'chat' | 'sender'> & { chatId: ChatId; senderId: ChatId; words?: string })
  | (Omit<InboundDeletion, 'chat' | 'sender'> & { chatId: ChatId; senderId?: ChatId })
  /** A quiet message in the room of the persona's message; ignored if there is none. */
  | (Omit<InboundReaction, 'chat' | 'sender'> & {
      chatId: ChatId;
      sender: { id: ChatId; name: string | null };
      tainted?: true;
    })
  | { kind: 'moved'; chatId: ChatId; address: Address }
  /** Closes a room: every persona forgets it, and nothing in it waits any more. */
  | { kind: 'apart'; room: RoomId };

export interface PendingCommand {
  id: number;
  room: RoomId;
}

export interface Received {
  rooms: RoomId[];
  commands: PendingCommand[];
  messages: number;
  duplicates: number;
  /** By its platform id. */
  choices?: ReadonlyMap<string, ChoiceOutcome>;
}

export type ReceiptOf<Kind extends Receipt['kind']> = Extract<Receipt, { kind: Kind }>;
