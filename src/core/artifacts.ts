/**
 * Artifacts (seed 003): files that come out of a task or a turn. What is handed on are references, never contents: the
 * blob lies at `data/artifacts/<task_id>/<id>.<ext>`.
 */
import type { FileHandle } from 'node:fs/promises';
import type { OutgoingFile } from './channel.js';
import type { ChatId } from './ids.js';

export interface ArtifactRef {
  id: string;
  title?: string;
  /** A MIME type. */
  type?: string;
  /** A path below `data`, as `artifacts/<task_id>/<id>.<ext>`, or an address of whoever gave it. */
  ref?: string;
}

export interface NewArtifact {
  /** The task's id, or the turn's. */
  taskId: string;
  id: string;
  title: string | null;
  type: string | null;
  content: string;
  /** Where it is to be sent; left out: nowhere. */
  chatId?: ChatId;
}

export interface FoundArtifact {
  path: string;
  /** As people are to see it: the id, with its extension. */
  name: string;
  type: string;
  title: string | null;
  bytes: number;
}

export type WrittenArtifact =
  /**
   * `file`: to be sent; a copy, for it goes out later, and by then an agent's command may have put something else in the
   * artifact's place. null: it is sent nowhere.
   */
  { ok: true; ref: ArtifactRef & { ref: string }; file: OutgoingFile | null } | { ok: false; reason: string };

/** Throw Fault `memory_unavailable` where the disk does not do as it is told. */
export interface Artifacts {
  /** The same id replaces what was there. `ok: false`: a sentence for the model; nothing was written. */
  write(artifact: NewArtifact, signal: AbortSignal): Promise<WrittenArtifact>;
  /** Only what lies really below `data/artifacts` and is a file; null otherwise. */
  find(taskId: string, id: string): Promise<FoundArtifact | null>;
  /**
   * As `find`, opened for reading; to be closed by whoever asked. What is served is read from here: between a look at a
   * path and its use an agent's command could put a link there.
   */
  open(taskId: string, id: string): Promise<(FoundArtifact & { handle: FileHandle }) | null>;
  /** Of one task, by their ids. */
  list(taskId: string): Promise<ArtifactRef[]>;
  /** Where the files of a task lie. Throws for an id that is no folder's name. */
  folderOf(taskId: string): string;
}

/** What an answer says of artifacts in a fenced block (contract, part 9). Without content and ref it names one that is there. */
export interface ArtifactDelta {
  id: string;
  title?: string;
  type?: string;
  content?: string;
  ref?: string;
}

/** What is a name on every disk; `.` and `..` are none. */
export const ARTIFACT_ID = /^(?!\.{1,2}$)[A-Za-z0-9._-]{1,64}$/;

export function isArtifactId(id: string): boolean {
  return ARTIFACT_ID.test(id);
}

/** `text/markdown`, also with parameters. */
export function isMimeType(type: string): boolean {
  return type.length <= 200 && /^[a-z0-9][\w.+-]*\/[a-z0-9][\w.+-]*[ \t]*(?:;[ -~]*)?$/i.test(type);
}
