/**
 * Artifacts (seed 003): files that come out of a task or a turn. What is handed on are references, never contents: the
 * blob lies at `data/artifacts/<task_id>/<id>.<ext>`.
 */

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
}

/** A file that was opened for reading; to be closed by whoever asked. */
export interface OpenedArtifact {
  path: string;
  type: string;
  title: string | null;
  bytes: number;
}

export interface Artifacts {
  /** The same id replaces what was there. `ok: false`: a sentence for the model; nothing was written. */
  write(
    artifact: NewArtifact,
    signal: AbortSignal,
  ): Promise<{ ok: true; ref: ArtifactRef & { ref: string } } | { ok: false; reason: string }>;
  /** Only what lies really below `data/artifacts` and is a file; null otherwise. */
  find(taskId: string, id: string): Promise<OpenedArtifact | null>;
  /** Of one task, by their ids. */
  list(taskId: string): Promise<ArtifactRef[]>;
  /** Where the files of a task lie. */
  folderOf(taskId: string): string;
}

/** What an answer says of artifacts in a fenced block (contract, part 9). */
export interface ArtifactDelta {
  id: string;
  title?: string;
  type?: string;
  content?: string;
  ref?: string;
}
