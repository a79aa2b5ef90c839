/** The interface of the index, between the gateway's thread, which reads the store, and the indexing thread. */
import type { ChatId, PersonaId, RoomId } from '../core/ids.js';
import type { Recalled, RecallQuery, Scope } from '../core/recall.js';
import type { Position } from '../core/transcript.js';

export interface IndexedView {
  addressed: Position;
  overheard: Position;
}

export interface MessagePage {
  scope: Scope;
  room: RoomId;
  resetAt: number;
  addressed: boolean;
  /** How far the view was indexed when the page was read; if the index has moved on since, the page is not added. */
  after: Position;
  messages: { id: number; heardAfter: number; at: number; author: string; text: string }[];
}

export interface FileText {
  scope: Scope;
  file: string;
  stamp: string;
  text: string;
}

/** A hit before the store has confirmed that it may be seen. */
export type Ranked =
  /** `before`: the message before it in its room. */
  | { kind: 'message'; messageId: number; before: number | null; relevance: number; rare: boolean }
  | { kind: 'line'; recalled: Recalled };

export interface WaitingChunk {
  chunk: number;
  scope: Scope;
  /** Either the id of the message with this text, or the text itself. */
  messageId: number | null;
  text: string | null;
  author: string;
}

export interface IndexPort {
  /** How far each view is indexed. Views that are unknown or were reset since start at the beginning. */
  views(views: { room: RoomId; scope: Scope; resetAt: number }[]): IndexedView[];
  /** The store no longer has what the index holds of this view: drops it. */
  dropView(scope: Scope, room: RoomId): void;
  /** Drops views and scopes that are not listed. */
  keepOnly(views: { chatId: ChatId; personaId: PersonaId; room: RoomId }[], scopes: Scope[]): void;
  /** The newest indexed message of each view. */
  newest(views: { room: RoomId; scope: Scope }[]): ({ messageId: number; at: number } | null)[];
  /** For each page: false if the index has moved on since it was read, and it was not added. */
  addMessages(pages: MessagePage[]): boolean[];
  /** Name and stamp of every indexed file of the scope. */
  files(scope: Scope): { file: string; stamp: string }[];
  dropFile(scope: Scope, file: string): void;
  /** Resolves when the whole file is indexed; until then its old text is found. False: it was dropped. */
  addFile(file: FileText): Promise<boolean>;
  search(ask: {
    scope: Scope;
    query: RecallQuery;
    most: number;
    /** Of the question, by each model whose vectors may answer; the first that has nearly all of the scope does. */
    vectors: { model: string; value: Float32Array }[];
  }): { ranked: Ranked[]; byVectors: boolean };
  forget(chatId: ChatId): void;
  /** Chunks without a vector of this model. */
  withoutVector(model: string, most: number): WaitingChunk[];
  /** A null value means that the chunk will never have a vector. */
  addVectors(model: string, vectors: { chunk: number; value: Float32Array | null }[]): void;
  /** `former`: the model whose vectors answer until those of this one are complete. */
  counts(model: string | null): { indexed: number; vectorsWaiting: number; former: string | null };
  close(): void;
}
