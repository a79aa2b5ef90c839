/** Files of messages that are forgotten: listed within the transaction, and deleted later. */
import type { StoredAttachment } from '../core/media.js';
import { FORGOTTEN_FILES } from '../core/store.js';
import type * as db from './db.js';
import { findSetting, setSetting } from './values.js';

type KeptFile = Extract<StoredAttachment['outcome'], { kind: 'kept' }>;

export function filesIn(attachments: unknown, which: (file: KeptFile) => boolean): string[] {
  if (typeof attachments !== 'string') return [];
  return (JSON.parse(attachments) as StoredAttachment[]).flatMap(({ outcome }) =>
    outcome?.kind === 'kept' && which(outcome) ? [outcome.file] : [],
  );
}

/** Notes the files of these messages, to be deleted. To be called within a transaction. */
export function* forgetFiles(attachments: readonly (string | null)[]): db.Verb<void> {
  const files = attachments.flatMap((of) => filesIn(of, () => true));
  if (files.length === 0) return;
  const noted: string[] = JSON.parse((yield* findSetting(FORGOTTEN_FILES)) ?? '[]');
  yield* setSetting(FORGOTTEN_FILES, JSON.stringify([...noted, ...files]));
}
