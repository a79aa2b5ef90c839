/**
 * The audit log: who changes what, where, when and on whose word. Entered before the thing is done, so an entry says
 * that it was begun; what is done again after a crash may stand twice.
 */
import type { ChatId } from './ids.js';

export const AUDIT_KINDS = [
  /** A process of the gateway began, with which configuration, and with which logins and keys. */
  'start',
  'configuration',
  'credentials',
  /** Who may talk, and who is an owner. */
  'approval',
  'owner',
  /** A chat command that changes something or is for owners. */
  'command',
  /** A tool that writes or sends: in its own chat, and in another one. */
  'tool',
  'across',
  /** A tool call about which a person is asked: that it was, and what was decided. */
  'call',
  /** A device was linked to a platform. */
  'link',
  'backup',
  'restore',
  /** About the log itself; `torn` and `broken`: what a crash left behind, and what somebody changed. */
  'audit',
  'torn',
  'broken',
] as const;

export type AuditKind = (typeof AUDIT_KINDS)[number];

export interface AuditEntry {
  kind: AuditKind;
  /** A sender's id, `chat/persona`, or one of those below. */
  who: string;
  /** The chat that it concerns; null: none, or all. */
  where: ChatId | null;
  /** Plain words: nothing that people wrote, and no secrets. */
  what: string;
  /** The sender whose words led to it; null: nobody's. */
  word: ChatId | null;
  /** Further values by name: the settings of a configuration. */
  details?: Record<string, string>;
}

/** Whoever sits at the command line, and the gateway on its own. */
export const OPERATOR = 'operator';
export const GATEWAY = 'gateway';

export interface Audit {
  /** Resolves when it is on the disk. Rejects with a Fault (`audit_unavailable`): then what was to be done is not done. */
  record(entry: AuditEntry): Promise<void>;
  /** As `record`, for what goes on without: never rejects. That it is missing is said in the log, and later in the audit log. */
  note(entry: AuditEntry): Promise<void>;
}
