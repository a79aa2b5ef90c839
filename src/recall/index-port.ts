/** What the index can do: spoken between the gateway's thread, which reads the store, and the one that indexes. */
import type { ChatId, PersonaId, RoomId } from '../core/ids.js';
import type { Recalled, RecallQuery, Scope } from '../core/recall.js';
import type { Position } from '../core/view.js';

export interface IndexedView {
  addressed: Position;
  overheard: Position;
}

export interface MessagePage {
  scope: Scope;
  room: RoomId;
  resetAt: number;
  addressed: boolean;
  /** Where the index stood when the page was read; a page that begins elsewhere by now is not taken. */
  after: Position;
  messages: { id: number; heardAfter: number; at: number; author: string; text: string }[];
}

export interface FileText {
  scope: Scope;
  file: string;
  stamp: string;
  text: string;
}

/** A hit before the store was asked whether it may be seen. */
export type Ranked =
  | { kind: 'message'; messageId: number; relevance: number }
  | { kind: 'line'; recalled: Recalled };

export interface WaitingChunk {
  chunk: number;
  scope: Scope;
  /** The message whose text it is, or the text. */
  messageId: number | null;
  text: string | null;
  author: string;
}

export interface IndexPort {
  /** Where each stands. Views that are unknown, or were reset since, begin at the beginning. */
  views(views: { room: RoomId; scope: Scope; resetAt: number }[]): IndexedView[];
  /** The store no longer knows what the index holds of this view: it is dropped. */
  dropView(scope: Scope, room: RoomId): void;
  /** Views and scopes that are not among these are dropped. */
  keepOnly(views: { chatId: ChatId; personaId: PersonaId; room: RoomId }[], scopes: Scope[]): void;
  /** The newest indexed message of each view. */
  newest(views: { room: RoomId; scope: Scope }[]): ({ messageId: number; at: number } | null)[];
  /** For each page, false when the index stands elsewhere by now, and the page was not taken. */
  addMessages(pages: MessagePage[]): boolean[];
  /** Name and stamp of every indexed file of the scope. */
  files(scope: Scope): { file: string; stamp: string }[];
  dropFile(scope: Scope, file: string): void;
  /** Resolves when the whole file stands in the index; until then its former text does. False: it was dropped. */
  addFile(file: FileText): Promise<boolean>;
  search(ask: {
    scope: Scope;
    query: RecallQuery;
    most: number;
    vector: { model: string; value: Float32Array } | null;
  }): { ranked: Ranked[]; byVectors: boolean };
  forget(chatId: ChatId): void;
  /** Chunks without a vector of this model. */
  withoutVector(model: string, most: number): WaitingChunk[];
  /** null: there will be none. */
  addVectors(model: string, vectors: { chunk: number; value: Float32Array | null }[]): void;
  counts(model: string | null): { indexed: number; vectorsWaiting: number };
  close(): void;
}
